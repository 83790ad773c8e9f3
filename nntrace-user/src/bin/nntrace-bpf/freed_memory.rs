//! Memory that was freed, given back to the system.

/// Gives back what the allocator keeps of freed memory. Loading the kernel programs and searching files take many times as much
/// as what follows, and the allocator would keep most of that as long as the run lasts.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, locks the allocator itself, and touches only memory that is free.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
