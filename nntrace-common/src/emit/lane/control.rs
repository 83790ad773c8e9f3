//! The control blocks of threads with lanes. A forked child finds zeros in them, and a thread leaves its one to the next
//! thread that needs one.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering, compiler_fence};

use super::ring::Ring;
use super::stage;
use super::system::{self, Descriptor};
use crate::emit::{events, lane::offer::offer};
use crate::express::HEADER_BYTES;

/// Bytes of all lanes of a library at most.
const ALL_BYTES: u64 = 64 << 20;
/// Bytes of all lanes of a library before a collector has granted any.
const FIRST_BYTES: u64 = 256 << 10;
/// Owner of a block that nobody has.
const NOBODY: i32 = -1;
/// Blocks that are looked at for one whose thread is dead. Not all of many at once: the next thread goes on.
const CHECKS: u32 = 16;

/// List of all control blocks of a library. All its bytes may be zero.
pub(super) struct List {
    /// The process, which another one that shares the memory, after `vfork`, is not.
    process: AtomicI32,
    first: AtomicPtr<Block>,
    /// Where the search for a dead thread's goes on.
    next_checked: AtomicPtr<Block>,
    /// Bytes of all lanes.
    bytes: AtomicU64,
    /// Bytes that a collector has granted; 0 before.
    granted: AtomicU64,
}

/// The list, once it was needed. It stays until the library is unloaded.
static LIST: AtomicPtr<List> = AtomicPtr::new(ptr::null_mut());

/// Control block of a thread. All its bytes may be zero.
pub(super) struct Block {
    next: AtomicPtr<Self>,
    /// Thread that it belongs to, or 0; when that is dead another may take it.
    owner: AtomicI32,
    /// Whether the owner is at work with the lane, which a signal handler must leave alone then.
    is_busy: AtomicBool,
    lane: UnsafeCell<Lane>,
}

/// Lane of a thread. All its bytes may be zero: it has no ring.
pub(super) struct Lane {
    /// Ring.
    pub(super) ring: Ring,
    /// Descriptor of the ring's memory, until it was closed.
    file: Option<Descriptor>,
    /// File that it is a descriptor of: the program may have closed it, and opened another one.
    identity: [u64; 2],
    /// Whether no mark was written yet.
    pub(super) is_new: bool,
    /// Time before which no other ring is made, ns.
    pub(super) retry: u64,
    /// Time for which the last failure made the thread wait, ns.
    pub(super) wait: u64,
    /// Whether the thread may not read the counter: it goes without a lane.
    pub(super) is_barred: bool,
}

/// Lane of this thread, while nothing else on it may use it.
pub(super) struct Busy<'a>(&'a Block);

impl List {
    /// Returns the list, if there is one.
    fn existing() -> Option<&'static Self> {
        // SAFETY: it is mapped for as long as the library is, and its fields are atomic.
        unsafe { LIST.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the list, unless this process only borrows the memory of another.
    fn get() -> Option<&'static Self> {
        let list = Self::existing().or_else(Self::create)?;
        let process = system::process_id();
        match list.process.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed) {
            Err(owner) if owner != process => None,
            _ => Some(list),
        }
    }

    #[cold]
    fn create() -> Option<&'static Self> {
        if stage::is_unloaded() {
            return None;
        }
        let memory = system::map_wiped(size_of::<Self>())?;
        let list = memory.cast::<Self>();
        let is_late = LIST
            .compare_exchange(ptr::null_mut(), list.as_ptr(), Ordering::AcqRel, Ordering::Acquire)
            .is_err();
        if is_late {
            // SAFETY: it was mapped above, and nobody knows of it, as another thread was faster.
            unsafe { system::unmap(memory, size_of::<Self>()) };
        }
        Self::existing()
    }

    /// Reserves bytes for a lane; returns whether there were as many left.
    fn reserve(&self, bytes: u64) -> bool {
        let granted = self.granted.load(Ordering::Relaxed);
        let limit = if granted == 0 { FIRST_BYTES } else { granted.min(ALL_BYTES) };
        let sum = |all: u64| all.checked_add(bytes).filter(|all| *all <= limit);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Gives all up, as the library is unloaded.
    ///
    /// # Safety
    /// No other thread uses the library any more.
    unsafe fn release_all(&'static self) {
        let mut at = self.first.load(Ordering::Acquire);
        while let Some(block) = NonNull::new(at) {
            // SAFETY: blocks in the list are mapped, and nobody else is there to use this one.
            let (next, lane) =
                unsafe { (block.as_ref().next.load(Ordering::Relaxed), block.as_ref().lane.get()) };
            // SAFETY: as above.
            unsafe {
                (*lane).drop_ring();
                system::unmap(block.cast(), size_of::<Block>());
            }
            at = next;
        }
    }

    /// Takes the block of a dead thread for this one, and gives up the rings of other ones. The search goes around the list.
    fn take_over(&self, thread: i32) -> Option<&'static Block> {
        let or_first = |at: *mut Block| if at.is_null() { self.first.load(Ordering::Acquire) } else { at };
        let start = or_first(self.next_checked.load(Ordering::Acquire));
        let mut at = start;
        let mut found = None;
        for _ in 0..CHECKS {
            // SAFETY: blocks are mapped for as long as the library is. Of those of other threads only the atomic fields are used.
            let Some(block) = (unsafe { at.as_ref() }) else { break };
            at = or_first(block.next.load(Ordering::Relaxed));
            let owner = block.owner.load(Ordering::Relaxed);
            // A dead thread may have had the id of this one.
            let is_free = if owner == NOBODY {
                found.is_none()
            } else {
                owner == thread || system::is_dead(self.process.load(Ordering::Relaxed), owner)
            };
            if is_free
                && block.owner.compare_exchange(owner, thread, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                // SAFETY: it belongs to this thread now.
                unsafe { block.clear() };
                if found.is_none() {
                    found = Some(block);
                } else {
                    block.owner.store(NOBODY, Ordering::Release);
                }
            }
            if at == start {
                break;
            }
        }
        self.next_checked.store(at, Ordering::Release);
        found
    }

    /// Adds the block of this thread.
    fn add(&self, block: &'static Block, thread: i32) {
        block.owner.store(thread, Ordering::Relaxed);
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            block.next.store(first, Ordering::Relaxed);
            let new = ptr::from_ref(block).cast_mut();
            match self.first.compare_exchange(first, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => first = other,
            }
        }
    }
}

impl Block {
    /// Returns a block for this thread: `own` if it has one, which a fork has emptied, else that of a dead thread, or a new
    /// one. It has no ring.
    pub(super) fn find(own: Option<&'static Self>) -> Option<&'static Self> {
        if system::goes_without() {
            return None;
        }
        let list = List::get()?;
        let thread = system::thread_id();
        if own.is_none()
            && let Some(block) = list.take_over(thread)
        {
            return Some(block);
        }
        // SAFETY: new memory, all zeros, which is a block; it stays mapped.
        let block =
            own.or_else(|| Some(unsafe { system::map_wiped(size_of::<Self>())?.cast::<Self>().as_ref() }))?;
        list.add(block, thread);
        Some(block)
    }

    /// Empties the block of a dead thread, which may have died at work.
    ///
    /// # Safety
    /// The block belongs to this thread.
    unsafe fn clear(&self) {
        self.is_busy.store(false, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        if let Some(mut lane) = unsafe { self.enter() } {
            lane.drop_ring();
            (lane.retry, lane.wait, lane.is_barred) = (0, 0, false);
        }
    }

    /// Whether it has an owner: after a fork it has none.
    #[inline]
    pub(super) fn has_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed) != 0
    }

    /// Returns the lane, unless this is a signal handler that interrupts the thread at work with it.
    ///
    /// # Safety
    /// The block belongs to this thread.
    #[inline]
    pub(super) unsafe fn enter(&self) -> Option<Busy<'_>> {
        if self.is_busy.load(Ordering::Relaxed) {
            return None;
        }
        self.set_busy(true);
        Some(Busy(self))
    }

    /// Sets whether it is in use, for a signal handler on this thread, which sees all that was done before, and nothing
    /// of what comes after.
    #[inline]
    fn set_busy(&self, is_busy: bool) {
        compiler_fence(Ordering::SeqCst);
        self.is_busy.store(is_busy, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
}

impl Deref for Busy<'_> {
    type Target = Lane;

    #[inline]
    fn deref(&self) -> &Lane {
        // SAFETY: the lane of this thread, on which nothing else uses it, as the block is busy.
        unsafe { &*self.0.lane.get() }
    }
}

impl DerefMut for Busy<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Lane {
        // SAFETY: as above.
        unsafe { &mut *self.0.lane.get() }
    }
}

impl Drop for Busy<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.set_busy(false);
    }
}

impl Busy<'_> {
    /// Makes a ring of this many bytes in place of the one that there is, if possible, and offers it.
    pub(super) fn make_ring(&mut self, bytes: u64) {
        if system::goes_without() {
            return;
        }
        self.note_grant();
        let all = bytes + HEADER_BYTES as u64;
        let Some(list) = List::existing().filter(|list| list.reserve(all)) else { return };
        let Some((file, identity, memory)) = map_lane(all as usize) else {
            self.give_back(list, all);
            return;
        };
        if self.0.has_owner() {
            self.drop_ring();
            let key = events::handle();
            (self.file, self.identity, self.is_new) = (Some(file), identity, true);
            // SAFETY: new memory of a file of this length, which cannot become shorter. Only `drop_ring` and the following
            // unmap it.
            unsafe { self.ring.start(memory, bytes, key) };
            compiler_fence(Ordering::SeqCst);
            if self.0.has_owner() {
                offer(file.number(), key);
                return;
            }
            self.ring.forget();
        }
        // This is a child now, forked in a signal handler, and the lane its parent's.
        // SAFETY: it was mapped above, and nobody knows of it.
        unsafe { system::unmap_lane(memory, all as usize) };
        file.close();
        self.give_back(list, all);
    }

    /// Gives reserved bytes back. A child that was forked since then has reserved none.
    fn give_back(&self, list: &List, bytes: u64) {
        if self.0.has_owner() {
            list.release(bytes);
        }
    }
}

impl Lane {
    /// Notes what the collector grants, by this lane, to all of the library.
    pub(super) fn note_grant(&self) {
        if let Some(list) = List::existing()
            && self.ring.grant() != 0
        {
            list.granted.store(self.ring.grant(), Ordering::Relaxed);
        }
    }

    /// Offers the ring once more, if it was not written to yet and its descriptor still is one; returns whether it was.
    pub(super) fn offer_again(&self) -> bool {
        let file = self.own_file().filter(|_| self.is_new && self.ring.exists());
        if let Some(file) = file {
            offer(file.number(), self.ring.key());
        }
        file.is_some()
    }

    /// Closes the descriptor of the memory, if it still is one.
    pub(super) fn close_file(&mut self) {
        if let Some(file) = self.own_file() {
            file.close();
        }
        self.file = None;
    }

    /// Returns the descriptor of the memory, if it still is one: the program may have closed it, and opened another file.
    fn own_file(&self) -> Option<Descriptor> {
        self.file.filter(|file| !system::is_confined() && file.identity() == Some(self.identity))
    }

    /// Gives the ring's memory up. The profiler has a mapping of its own.
    pub(super) fn drop_ring(&mut self) {
        self.close_file();
        if let Some((memory, bytes)) = self.ring.close() {
            let all = bytes + HEADER_BYTES as u64;
            // SAFETY: it was mapped with this many bytes, and the ring does not refer to it any more.
            unsafe { system::unmap_lane(memory, all as usize) };
            if let Some(list) = List::existing() {
                list.release(all);
            }
        }
    }
}

/// Gives up all lanes, as the library is unloaded.
///
/// # Safety
/// No other thread uses the library any more, and this one has forgotten its block.
pub(super) unsafe fn release_all() {
    if let Some(list) = List::existing() {
        // SAFETY: the caller's promise.
        unsafe { list.release_all() };
        LIST.store(ptr::null_mut(), Ordering::Release);
        // SAFETY: it was mapped by `List::create`, and nothing refers to it.
        unsafe { system::unmap(NonNull::from(list).cast(), size_of::<List>()) };
    }
}

/// Makes and maps the memory of a lane; returns its file, the identity of that, and where it is.
fn map_lane(bytes: usize) -> Option<(Descriptor, [u64; 2], NonNull<u8>)> {
    let file = system::lane_file(bytes)?;
    let mapped = file.identity().zip(system::map_lane(file, bytes));
    if mapped.is_none() {
        file.close();
    }
    mapped.map(|(identity, memory)| (file, identity, memory))
}
