//! An array of the kernel that this process sees as memory of its own: a look at a thousand slots takes no system call.

use std::{
    marker::PhantomData,
    mem::{MaybeUninit, size_of},
    os::fd::{AsFd, BorrowedFd},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, anyhow};
use aya::{
    Pod,
    maps::{Array, Map, MapData},
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::Error;

/// Bytes of a word.
const WORD: usize = 8;

/// The array, to be read.
pub struct View<T> {
    at: *const u64,
    bytes: usize,
    count: u32,
    _elements: PhantomData<T>,
}

impl<T: Pod> View<T> {
    /// Whole words, and no room between two elements: as the kernel lays them out.
    const WORDS: usize = {
        assert!(size_of::<T>().is_multiple_of(WORD));
        size_of::<T>() / WORD
    };

    fn of(map: BorrowedFd<'_>, count: u32) -> rustix::io::Result<Self> {
        let bytes = (count as usize * size_of::<T>()).next_multiple_of(rustix::param::page_size());
        // SAFETY: a new mapping, which nothing else is in the place of.
        let at = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, map, 0) }?;
        Ok(Self {
            at: at.cast(),
            bytes,
            count,
            _elements: PhantomData,
        })
    }

    /// One word of an element, by its offset in bytes.
    pub fn word(&self, number: u32, offset: usize) -> Option<u64> {
        let word = offset / WORD;
        (number < self.count && word < Self::WORDS).then(|| self.load(number as usize * Self::WORDS + word))
    }

    /// An element, its words read one after the other: each is whole, and no older than the one before it.
    pub fn get(&self, number: u32) -> Result<T, Error> {
        if number >= self.count {
            return Err(anyhow!("slot {number} of {}: what names it is broken", self.count).into());
        }
        let mut value = MaybeUninit::<T>::uninit();
        let words = value.as_mut_ptr().cast::<u64>();
        for word in 0..Self::WORDS {
            let read = self.load(number as usize * Self::WORDS + word);
            // SAFETY: within the value, which need not be aligned to a word.
            unsafe { words.add(word).write_unaligned(read) };
        }
        // SAFETY: all of it is written, and any bytes are a value.
        Ok(unsafe { value.assume_init() })
    }

    fn load(&self, word: usize) -> u64 {
        // SAFETY: within the mapping, which stays as long as `self`; the kernel changes words whole.
        unsafe { AtomicU64::from_ptr(self.at.add(word).cast_mut()).load(Ordering::Acquire) }
    }
}

impl<T> Drop for View<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping of this view; no reference into it is given out.
        let _ = unsafe { munmap(self.at.cast_mut().cast(), self.bytes) };
    }
}

/// An array that is written by system calls and read as memory.
pub struct Viewed<T: Pod> {
    /// To write to.
    pub array: Array<MapData, T>,
    /// To read from.
    pub view: View<T>,
}

impl<T: Pod> Viewed<T> {
    /// Of a map that the object says can be mapped.
    pub fn open(map: Map, name: &str) -> Result<Self, Error> {
        let view = match &map {
            Map::Array(data) => {
                let count = data.info().with_context(|| format!("look at map {name}"))?;
                View::of(data.fd().as_fd(), count.max_entries())
                    .with_context(|| format!("map {name} into memory"))?
            }
            _ => return Err(anyhow!("map {name} of the object has another type: rebuild it").into()),
        };
        Ok(Self {
            array: Array::try_from(map).with_context(|| format!("map {name}"))?,
            view,
        })
    }
}
