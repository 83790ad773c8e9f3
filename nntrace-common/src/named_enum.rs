//! Enumerations whose values have names that marks or snapshots spell: the names stand beside the values, once.

/// Defines an enumeration numbered from 0, `ALL` of its values in that order, and a function from a value to its name.
/// With the feature `serde` a value is serialized as its name.
macro_rules! enumeration {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident {
            $($(#[$doc:meta])* $value:ident = $name:literal,)+
        }

        $(#[$function_doc:meta])*
        pub fn $function:ident;
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[repr(u8)]
        pub enum $type {
            $($(#[$doc])* #[cfg_attr(feature = "serde", serde(rename = $name))] $value,)+
        }

        impl $type {
            /// Every value, in the order of their numbers.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            $(#[$function_doc])*
            #[must_use]
            pub const fn $function(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }
    };
}

pub(crate) use enumeration;
