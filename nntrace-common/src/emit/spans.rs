//! Marks of the spans of `tracing`.

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::Payload;
use super::write::{self, Begun, begin_if_heard};

/// Layer that turns spans into sections: those with the fields `layer` and `phase`, by the letters of a mark.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let subscriber = tracing_subscriber::registry().with(nntrace_common::emit::MarkLayer);
/// tracing::subscriber::with_default(subscriber, || {
///     let _entered = tracing::info_span!("compute", layer = "LR", phase = "PE", iter = 7, img = "cat.jpg").entered();
/// });
/// ```
///
/// The span's name is the section's, its other fields are written as `#key=value`, with the contract's meaning for
/// `iter`, `acct` and `h`. A section begins whenever the span is entered, and ends when it is left, so a span that
/// waits (as a future does) makes several. Letters that are not in the contract are written as they are: the profiler
/// counts them as unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarkLayer;

/// Data of a marked span, kept with it.
#[derive(Default)]
struct Marked {
    layer: String,
    phase: String,
    /// `#key=value` for each other field.
    details: String,
}

thread_local! {
    /// Marked spans that this thread is in, and how their begins were written.
    static ENTERED: RefCell<Vec<(Id, Begun)>> = const { RefCell::new(Vec::new()) };
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for MarkLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if is_marked(attributes.metadata())
            && let Some(span) = context.span(id)
        {
            let mut marked = Marked::default();
            attributes.record(&mut marked);
            span.extensions_mut().insert(marked);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(marked) = span.extensions_mut().get_mut::<Marked>()
        {
            values.record(marked);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(marked) = span.extensions().get::<Marked>()
        {
            let begun = begin_if_heard(|| marked.begin(span.name()));
            ENTERED.with_borrow_mut(|entered| entered.push((id.clone(), begun)));
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let left = ENTERED.with_borrow_mut(|entered| {
            let at = entered.iter().rposition(|(entered, _)| entered == id)?;
            Some(entered.remove(at))
        });
        if let Some((_, begun)) = left {
            write::end(begun);
        }
    }
}

fn is_marked(metadata: &Metadata<'_>) -> bool {
    ["layer", "phase"].iter().all(|name| metadata.fields().field(name).is_some())
}

impl Marked {
    fn begin(&self, name: &str) -> Payload {
        let mut payload = Payload::untagged();
        payload.push_tagged("", &self.layer, &self.phase, name);
        payload.push(&self.details);
        payload
    }

    fn tell(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let into = match field.name() {
            "layer" => &mut self.layer,
            "phase" => &mut self.phase,
            key => {
                self.details.push('#');
                self.details.push_str(key);
                self.details.push('=');
                &mut self.details
            }
        };
        // A `#` and control characters would end the value.
        let clean = |c: char| if c == '#' || c.is_ascii_control() { '_' } else { c };
        let from = into.len();
        // Writing to a string cannot fail.
        let _ = into.write_fmt(value);
        if into[from..].contains(|c| clean(c) != c) {
            let cleaned: String = into[from..].chars().map(clean).collect();
            into.replace_range(from.., &cleaned);
        }
    }
}

impl Visit for Marked {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.tell(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.tell(field, format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::{field, info_span};
    use tracing_subscriber::prelude::*;

    use super::*;

    /// Log of the marks that would be written, without the process.
    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
        fn on_enter(&self, id: &Id, context: Context<'_, S>) {
            let span = context.span(id).unwrap();
            let extensions = span.extensions();
            let text = extensions.get::<Marked>().map_or("unmarked".to_owned(), |marked| {
                let payload = marked.begin(span.name());
                payload.as_c_str().to_str().unwrap().splitn(3, '|').nth(2).unwrap().to_owned()
            });
            self.0.lock().unwrap().push(text);
        }
    }

    #[test]
    fn spans_tell_their_fields() {
        let seen = Seen::default();
        let subscriber = tracing_subscriber::registry().with(MarkLayer).with(seen.clone());
        tracing::subscriber::with_default(subscriber, || {
            let path = std::path::Path::new("a#b.jpg");
            let span = info_span!(
                "compute",
                layer = "LR",
                phase = "PE",
                iter = 7,
                acct = "foo",
                img = %path.display(),
                late = field::Empty
            );
            span.in_scope(|| ());
            span.record("late", true);
            span.in_scope(|| info_span!("other", layer = "LR").in_scope(|| ()));
            info_span!("odd", layer = "LQ", phase = "PE").in_scope(|| ());
        });
        let expected = [
            "[NN_LR_PE]compute#iter=7#acct=foo#img=a_b.jpg",
            "[NN_LR_PE]compute#iter=7#acct=foo#img=a_b.jpg#late=true",
            "unmarked",
            "[NN_LQ_PE]odd",
        ];
        assert_eq!(*seen.0.lock().unwrap(), expected);
        assert!(ENTERED.with_borrow(Vec::is_empty));
    }
}
