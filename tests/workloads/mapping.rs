//! Memory straight from the kernel, so that its size is known to the page.

use std::ffi::c_void;
use std::fs::File;
use std::hint::black_box;
use std::ptr;
use std::slice;

use anyhow::{Context, Result, anyhow};
use rustix::mm::{self, Advice, MapFlags, MremapFlags, ProtFlags};

use crate::size::{PAGE, Size};

/// What one page of page tables maps.
const MAPPED_BY_TABLE: usize = 512 * PAGE;

/// A mapping. It stays until [`Mapping::unmap`], which can fail and says so, or until the process ends.
pub struct Mapping {
    bytes: &'static mut [u8],
}

impl Mapping {
    /// Private anonymous memory.
    pub fn private(size: Size) -> Result<Self> {
        Self::anonymous(size, MapFlags::PRIVATE)
    }

    /// Private anonymous memory of which most will never be touched.
    pub fn sparse(size: Size) -> Result<Self> {
        Self::anonymous(size, MapFlags::PRIVATE | MapFlags::NORESERVE)
    }

    /// Shared anonymous memory.
    pub fn shared(size: Size) -> Result<Self> {
        Self::anonymous(size, MapFlags::SHARED)
    }

    /// Pages of 2 MiB from the pool that the administrator has set apart.
    pub fn hugetlb(size: Size) -> Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
        Self::anonymous(size, flags).context("is vm.nr_hugepages large enough?")
    }

    fn anonymous(size: Size, flags: MapFlags) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free place.
        let start = unsafe { mm::mmap_anonymous(ptr::null_mut(), size.0, protection, flags) }
            .with_context(|| format!("mmap of {size}"))?;
        // SAFETY: zeroed memory of that size, nobody else's.
        Ok(unsafe { Self::at(start, size) })
    }

    /// A file open for reading and writing, shared with it.
    pub fn file(file: &File, size: Size) -> Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free place.
        let start = unsafe { mm::mmap(ptr::null_mut(), size.0, protection, MapFlags::SHARED, file, 0) }
            .with_context(|| format!("mmap of {size} of a file"))?;
        // SAFETY: as long as the file, which is this program's own: nobody else shortens or writes it.
        Ok(unsafe { Self::at(start, size) })
    }

    /// # Safety
    ///
    /// `size` bytes are mapped there until [`Mapping::unmap`], initialised, writable, and for this mapping alone.
    unsafe fn at(start: *mut c_void, size: Size) -> Self {
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice::from_raw_parts_mut(start.cast(), size.0) };
        Self { bytes }
    }

    /// Writes to every page.
    pub fn touch(&mut self) {
        touch(self.bytes);
    }

    /// Writes to every page of the first part.
    pub fn touch_first(&mut self, part: Size) {
        touch(&mut self.bytes[..part.0]);
    }

    /// Writes to every page but those of the first part.
    pub fn touch_after(&mut self, part: Size) {
        touch(&mut self.bytes[part.0..]);
    }

    /// Reads from every page.
    pub fn read(&self) {
        read(self.bytes, PAGE);
    }

    /// Makes all page tables of untouched memory, and nothing else: reading maps the page of zeroes, which is nobody's.
    pub fn make_page_tables(&self) {
        read(self.bytes, MAPPED_BY_TABLE);
    }

    pub fn advise(&mut self, advice: Advice) -> Result<()> {
        let (start, length) = self.raw();
        // SAFETY: this mapping's own range; the bytes may change to 0, which `bytes` allows.
        unsafe { mm::madvise(start, length, advice) }.with_context(|| format!("madvise {advice:?}"))
    }

    /// Makes every page present and keeps it so.
    pub fn lock(&mut self) -> Result<()> {
        let (start, length) = self.raw();
        // SAFETY: this mapping's own range.
        unsafe { mm::mlock(start, length) }.context("mlock; is `ulimit -l` large enough?")
    }

    /// Grows the mapping, elsewhere if need be.
    pub fn grow(mut self, size: Size) -> Result<Self> {
        let (start, length) = self.raw();
        // SAFETY: this mapping's own range, and `self` with the old address is consumed.
        let start = unsafe { mm::mremap(start, length, size.0, MremapFlags::MAYMOVE) }
            .with_context(|| format!("mremap to {size}"))?;
        // SAFETY: the same memory and more of it, nobody else's.
        Ok(unsafe { Self::at(start, size) })
    }

    /// Gives the pages of the first part back, but keeps the page tables: the kernel may drop those along with the pages
    /// of 2 MiB or more, and is late to count it.
    pub fn release_first(&mut self, part: Size) -> Result<()> {
        for piece in self.bytes[..part.0].chunks_mut(1 << 20) {
            // SAFETY: this mapping's own range; its bytes change to 0.
            unsafe { mm::madvise(piece.as_mut_ptr().cast(), piece.len(), Advice::LinuxDontNeed) }
                .context("madvise")?;
        }
        Ok(())
    }

    pub fn unmap(mut self) -> Result<()> {
        let (start, length) = self.raw();
        // SAFETY: this mapping's own range, and `self` is consumed.
        unsafe { mm::munmap(start, length) }.context("munmap")
    }

    fn raw(&mut self) -> (*mut c_void, usize) {
        (self.bytes.as_mut_ptr().cast(), self.bytes.len())
    }
}

fn touch(bytes: &mut [u8]) {
    for page in bytes.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(bytes);
}

fn read(bytes: &[u8], stride: usize) {
    for byte in bytes.iter().step_by(stride).chain(bytes.last()) {
        black_box(*byte);
    }
}

/// Whether this process, and those that it starts, may get transparent huge pages at all.
pub fn allow_huge_pages(allowed: bool) -> Result<()> {
    let disabled = libc::c_ulong::from(!allowed);
    // SAFETY: plain numbers; the kernel wants the unused ones to be 0.
    let status = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disabled, 0_u64, 0_u64, 0_u64) };
    if status == 0 {
        Ok(())
    } else {
        Err(anyhow!(std::io::Error::last_os_error()).context("PR_SET_THP_DISABLE"))
    }
}
