//! Open files as C functions.

use crate::FileSystem;
use crate::boundary::{call, exclusive, put, shared, text};
use ocssd_table_store::{Created, Hint, Map, Reader, Writer};
use std::ffi::c_char;

/// Begins a file, or goes on with one that is there if `is_continued` is not 0.
///
/// # Safety
/// The handle must be open, `path` point to `bytes` bytes, and `writer` to room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_create(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
    is_continued: i32,
    writer: *mut *mut Writer,
) -> i32 {
    call(|| {
        let created = if is_continued == 0 { Created::Anew } else { Created::Continued };
        // SAFETY: the caller's promise.
        unsafe {
            let made = (*fs).store.create(text(path, bytes)?, created)?;
            put(writer, Box::into_raw(Box::new(made)));
        }
        Ok(())
    })
}

/// What is known of a file before its first append.
///
/// # Safety
/// The handle must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_hint(
    writer: *const Writer,
    level: u8,
    stream: u8,
    bytes_expected: u64,
) -> i32 {
    // SAFETY: the caller's promise.
    call(|| unsafe { &*writer }.hint(Hint { level, stream, bytes_expected }))
}

/// Adds to the end of a file.
///
/// # Safety
/// The handle must be open, and `data` point to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_append(writer: *const Writer, data: *const c_char, bytes: usize) -> i32 {
    // SAFETY: the caller's promise.
    call(|| unsafe { (*writer).append(shared(data, bytes)) })
}

/// What was appended survives this process.
///
/// # Safety
/// The handle must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_flush(writer: *const Writer) -> i32 {
    // SAFETY: the caller's promise.
    call(|| unsafe { &*writer }.flush())
}

/// What was appended survives a power cut.
///
/// # Safety
/// The handle must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_sync(writer: *const Writer) -> i32 {
    // SAFETY: the caller's promise.
    call(|| unsafe { &*writer }.sync())
}

/// Makes a file shorter, or longer by zeros.
///
/// # Safety
/// The handle must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_truncate(writer: *const Writer, bytes: u64) -> i32 {
    // SAFETY: the caller's promise.
    call(|| unsafe { &*writer }.truncate(bytes))
}

/// Bytes of a file that is written.
///
/// # Safety
/// The handle must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_written(writer: *const Writer) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { &*writer }.bytes()
}

/// Ends a file; the handle stays.
///
/// # Safety
/// The handle must be open, and no other call use it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_close_writer(writer: *mut Writer) -> i32 {
    // SAFETY: the caller's promise.
    call(|| unsafe { &mut *writer }.close())
}

/// Gives a writer's handle back.
///
/// # Safety
/// The handle must be open, and not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_free_writer(writer: *mut Writer) {
    // SAFETY: the caller's promise.
    call(|| Ok(drop(unsafe { Box::from_raw(writer) })));
}

/// Opens a file to read it.
///
/// # Safety
/// The handle must be open, `path` point to `bytes` bytes, and `reader` to room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_open_file(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
    reader: *mut *mut Reader,
) -> i32 {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let opened = (*fs).store.open_file(text(path, bytes)?)?;
            put(reader, Box::into_raw(Box::new(opened)));
        }
        Ok(())
    })
}

/// Reads from `offset` on, as much as there is and as `into` has room for.
///
/// # Safety
/// The handle must be open, `into` have room for `bytes` bytes that nobody else uses, and `read` for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_read(
    reader: *const Reader,
    offset: u64,
    into: *mut c_char,
    bytes: usize,
    read: *mut usize,
) -> i32 {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let found = (*reader).read(offset, exclusive(into, bytes))?;
            put(read, found);
        }
        Ok(())
    })
}

/// Bytes of a file that is read.
///
/// # Safety
/// The handle must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_readable(reader: *const Reader) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { &*reader }.bytes()
}

/// Gives a reader's handle back.
///
/// # Safety
/// The handle must be open, and not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_free_reader(reader: *mut Reader) {
    // SAFETY: the caller's promise.
    call(|| Ok(drop(unsafe { Box::from_raw(reader) })));
}

/// Reads a file whole into memory. Its `length` bytes lie from `content` on until [`lightlsm_unmap`].
///
/// # Safety
/// The handle must be open, `path` point to `bytes` bytes, and the others to room for what they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_map(
    fs: *const FileSystem,
    path: *const c_char,
    bytes: usize,
    map: *mut *mut Map,
    content: *mut *const c_char,
    length: *mut usize,
) -> i32 {
    call(|| {
        // SAFETY: the caller's promise; a map's content does not move when its handle does.
        unsafe {
            let made = (*fs).store.map_file(text(path, bytes)?)?;
            put(content, made.content().as_ptr().cast());
            put(length, made.content().len());
            put(map, Box::into_raw(Box::new(made)));
        }
        Ok(())
    })
}

/// Gives a map's handle back, and its memory.
///
/// # Safety
/// The handle must be open, and neither it nor the content be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lightlsm_unmap(map: *mut Map) {
    // SAFETY: the caller's promise.
    call(|| Ok(drop(unsafe { Box::from_raw(map) })));
}
