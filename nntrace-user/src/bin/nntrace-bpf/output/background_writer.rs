//! Writer that lets another thread write: who makes the content need not wait for the disk.

use std::{
    io::{self, Write},
    mem,
    sync::mpsc::{self, Receiver, SyncSender},
    thread::{self, JoinHandle},
};

/// Bytes that are written at once.
const AT_ONCE: usize = 256 << 10;
/// Pieces of content that wait at most.
const MOST_WAITING: usize = 4;

/// Writer to a thread that writes.
#[derive(Debug)]
pub struct BackgroundWriter<W> {
    piece: Vec<u8>,
    /// `None` once the thread has ended.
    thread: Option<Thread<W>>,
}

#[derive(Debug)]
struct Thread<W> {
    full: SyncSender<Vec<u8>>,
    /// Pieces that were written, to be filled again.
    empty: Receiver<Vec<u8>>,
    ends: JoinHandle<io::Result<W>>,
}

impl<W: Write + Send + 'static> BackgroundWriter<W> {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn new(mut out: W) -> io::Result<Self> {
        let (full, pieces) = mpsc::sync_channel::<Vec<u8>>(MOST_WAITING);
        let (written, empty) = mpsc::channel();
        let ends = thread::Builder::new().name("writer".into()).spawn(move || {
            for mut piece in pieces {
                out.write_all(&piece)?;
                piece.clear();
                // Nobody fills the last ones.
                let _ = written.send(piece);
            }
            out.flush()?;
            Ok(out)
        })?;
        Ok(Self { piece: Vec::with_capacity(AT_ONCE), thread: Some(Thread { full, empty, ends }) })
    }

    /// Waits until everything is written; returns where it was written.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.hand_over()?;
        self.thread.take().map_or_else(|| Err(has_failed()), Thread::end)
    }

    /// Hands the piece to the thread.
    fn hand_over(&mut self) -> io::Result<()> {
        let Some(thread) = &self.thread else { return Err(has_failed()) };
        let empty = thread.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(AT_ONCE));
        let piece = mem::replace(&mut self.piece, empty);
        if thread.full.send(piece).is_ok() {
            return Ok(());
        }
        // It ended early, for a reason.
        match self.thread.take().map(Thread::end) {
            Some(Err(error)) => Err(error),
            _ => Err(has_failed()),
        }
    }
}

impl<W> Thread<W> {
    fn end(self) -> io::Result<W> {
        drop(self.full);
        self.ends.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes has panicked")))
    }
}

/// Returns the error of a writer whose failure was returned before.
fn has_failed() -> io::Error {
    io::Error::other("an earlier part could not be written")
}

impl<W: Write + Send + 'static> Write for BackgroundWriter<W> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() + bytes.len() > AT_ONCE && !self.piece.is_empty() {
            self.hand_over()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Hands over what is there, and does not wait for it.
    fn flush(&mut self) -> io::Result<()> {
        self.hand_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writer with room for this many bytes.
    struct Small(Vec<u8>, usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn everything_is_written_in_its_order() {
        let mut writer = BackgroundWriter::new(Small(Vec::new(), usize::MAX)).unwrap();
        let mut expected = Vec::new();
        for number in 0..200_000_u32 {
            let text = format!("{number}, ");
            writer.write_all(text.as_bytes()).unwrap();
            expected.extend_from_slice(text.as_bytes());
        }
        let large = vec![7; 3 * AT_ONCE];
        writer.write_all(&large).unwrap();
        expected.extend_from_slice(&large);
        assert!(writer.finish().unwrap().0 == expected);
    }

    #[test]
    fn a_failure_is_returned_once_it_is_known() {
        let mut writer = BackgroundWriter::new(Small(Vec::new(), AT_ONCE)).unwrap();
        let piece = vec![0; AT_ONCE / 2];
        let failed = (0..100).find_map(|_| writer.write_all(&piece).err()).unwrap();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
        assert!(writer.write_all(&piece).and_then(|()| writer.flush()).is_err());
        assert!(writer.finish().is_err());

        let mut writer = BackgroundWriter::new(Small(Vec::new(), 3)).unwrap();
        writer.write_all(b"four").unwrap();
        assert_eq!(writer.finish().map(|_| ()).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
