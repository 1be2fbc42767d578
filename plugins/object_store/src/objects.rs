//! The trait's methods on files of a store.

use crate::upload::Upload;
use crate::{label, listing};
use async_trait::async_trait;
use bytes::Bytes;
use chrono::DateTime;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    Attributes, CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use ocssd_table_store::{ErrorKind, FileStatus, Hint, Replace, Store, StoreError, TableId, Writer};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The directory objects lie in: other files of the store are no objects.
const ROOT: &str = "/objects";
/// What errors call it.
const NAME: &str = "open-channel drive";
/// Bytes a stream gives at once (chosen: what one request of the store reads).
const PART_BYTES: u64 = 1 << 20;

/// Objects on a drive. A clone is the same store.
#[derive(Clone)]
pub struct DriveObjects {
    pub(crate) store: Arc<Store>,
    /// Directories come with the first object in them and go with the last: both are looked at and changed under this lock.
    directories: Arc<Mutex<()>>,
}

impl DriveObjects {
    /// The objects of a store.
    ///
    /// # Errors
    /// If the directory they lie in cannot be made.
    pub fn new(store: Arc<Store>) -> Result<Self> {
        store.create_directory(ROOT, false).map_err(|error| failed(error, ROOT))?;
        Ok(Self { store, directories: Arc::default() })
    }

    /// What is known of an object.
    fn status(&self, location: &Path) -> Result<FileStatus> {
        let status =
            self.store.status(&file_of(location)).map_err(|error| failed(error, location.as_ref()))?;
        if status.is_directory {
            let error = StoreError::new(ErrorKind::NotFound, "names below it are objects, and it is none");
            return Err(failed(error, location.as_ref()));
        }
        Ok(status)
    }

    /// Begins an object that nobody sees.
    pub(crate) fn begin(&self, attributes: &Attributes) -> Result<Writer> {
        let Some(label) = label::encode(attributes) else {
            let source = format!("{attributes:?} has attributes that are not known here").into();
            return Err(Error::NotSupported { source });
        };
        self.store.create_unnamed(label).map_err(|error| failed(error, "a new object"))
    }

    /// The object appears.
    pub(crate) fn finish(&self, mut writer: Writer, to: &Path, replace: Replace) -> Result<PutResult> {
        let _directories = self.directories.lock().map_err(|_| after_a_bug())?;
        writer.publish_at(&file_of(to), replace).map_err(|error| failed(error, to.as_ref()))?;
        let e_tag = Some(etag(&self.status(to)?));
        Ok(PutResult { e_tag, version: None, extensions: Default::default() })
    }

    fn delete_now(&self, location: &Path) -> Result<()> {
        let _directories = self.directories.lock().map_err(|_| after_a_bug())?;
        let file = file_of(location);
        self.store.delete(&file).map_err(|error| failed(error, location.as_ref()))?;
        let mut directory = file.as_str();
        while let Some((above, _)) = directory.rsplit_once('/')
            && above != ROOT
            && self.store.delete_directory(above).is_ok()
        {
            directory = above;
        }
        Ok(())
    }

    /// What may be replaced by a put of this mode.
    fn replace_of(&self, location: &Path, mode: PutMode) -> Result<Replace> {
        let version = match mode {
            PutMode::Overwrite => return Ok(Replace::Anything),
            PutMode::Create => return Ok(Replace::Nothing),
            PutMode::Update(version) => version,
        };
        let wanted = version.e_tag.as_deref().and_then(parsed).ok_or_else(|| Error::Generic {
            store: NAME,
            source: format!(
                "an update names the version to be replaced by its e_tag, and not by {version:?}"
            )
            .into(),
        })?;
        // An object that is not there has no version either.
        self.status(location).map_err(|error| match error {
            Error::NotFound { path, source } => Error::Precondition { path, source },
            other => other,
        })?;
        Ok(wanted)
    }
}

/// The file of an object.
pub fn file_of(location: &Path) -> String {
    format!("{ROOT}/{location}")
}

/// An object's version: the table it lies in, and when it was written, since names of tables are used again.
fn etag(status: &FileStatus) -> String {
    format!("\"{}-{}\"", status.table.map_or(0, |table| table.0), status.modified_ns)
}

fn parsed(etag: &str) -> Option<Replace> {
    let (table, modified_ns) = etag.trim_matches('"').split_once('-')?;
    Some(Replace::Only { table: TableId(table.parse().ok()?), modified_ns: modified_ns.parse().ok()? })
}

/// What listings say of an object.
pub fn meta(location: Path, status: &FileStatus) -> ObjectMeta {
    let ns = i64::try_from(status.modified_ns).unwrap_or(i64::MAX);
    ObjectMeta {
        location,
        last_modified: DateTime::from_timestamp_nanos(ns),
        size: status.bytes,
        e_tag: Some(etag(status)),
        version: None,
    }
}

/// A failure of the store as the interface has it.
pub fn failed(error: StoreError, path: &str) -> Error {
    let path = path.to_owned();
    match error.kind {
        ErrorKind::NotFound => Error::NotFound { path, source: error.into() },
        ErrorKind::Exists => Error::AlreadyExists { path, source: error.into() },
        ErrorKind::Changed => Error::Precondition { path, source: error.into() },
        ErrorKind::NotSupported => Error::NotSupported { source: error.into() },
        _ => Error::Generic { store: NAME, source: error.into() },
    }
}

pub fn after_a_bug() -> Error {
    Error::Generic { store: NAME, source: "a bug stopped an earlier call; open the drive anew".into() }
}

/// Some bytes of a file.
fn read(reader: &ocssd_table_store::Reader, range: &Range<u64>, location: &Path) -> Result<Bytes> {
    let length = usize::try_from(range.end - range.start)
        .map_err(|error| Error::Generic { store: NAME, source: Box::new(error) })?;
    let mut bytes = vec![0; length];
    let found = reader.read(range.start, &mut bytes).map_err(|error| failed(error, location.as_ref()))?;
    bytes.truncate(found);
    Ok(bytes.into())
}

#[async_trait]
impl ObjectStore for DriveObjects {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let replace = self.replace_of(location, options.mode)?;
        let writer = self.begin(&options.attributes)?;
        // As many units as hold it, and not a stripe over all of them.
        let hint = Hint { bytes_expected: payload.content_length() as u64, ..Hint::default() };
        writer.hint(hint).map_err(|error| failed(error, location.as_ref()))?;
        for part in &payload {
            writer.append(part).map_err(|error| failed(error, location.as_ref()))?;
        }
        self.finish(writer, location, replace)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Upload::new(self.clone(), location.clone(), self.begin(&options.attributes)?)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let status = self.status(location)?;
        let meta = meta(location.clone(), &status);
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            None => 0..meta.size,
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| Error::Generic { store: NAME, source: Box::new(error) })?,
        };
        let reader =
            self.store.open_file(&file_of(location)).map_err(|error| failed(error, location.as_ref()))?;
        let (end, of_stream) = (if options.head { range.start } else { range.end }, location.clone());
        let parts = (range.start..end).step_by(usize::try_from(PART_BYTES).expect("1 MiB"));
        let parts =
            parts.map(move |first| read(&reader, &(first..(first + PART_BYTES).min(end)), &of_stream));
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::iter(parts).boxed()),
            attributes: label::decode(&status.label),
            meta,
            range,
            extensions: Default::default(),
        })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let objects = self.clone();
        locations
            .map(move |location| {
                let location = location?;
                objects.delete_now(&location)?;
                Ok(location)
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match listing::below(&self.store, prefix) {
            Ok(found) => stream::iter(found.into_iter().map(Ok)).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        listing::directly_below(&self.store, prefix)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let replace = match options.mode {
            CopyMode::Overwrite => Replace::Anything,
            CopyMode::Create => Replace::Nothing,
        };
        let status = self.status(from)?;
        let reader = self.store.open_file(&file_of(from)).map_err(|error| failed(error, from.as_ref()))?;
        let writer = self.begin(&label::decode(&status.label))?;
        let mut first = 0;
        while first < status.bytes {
            let part = first..(first + PART_BYTES).min(status.bytes);
            first = part.end;
            let bytes = read(&reader, &part, from)?;
            writer.append(&bytes).map_err(|error| failed(error, to.as_ref()))?;
        }
        self.finish(writer, to, replace).map(|_| ())
    }
}

impl fmt::Display for DriveObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl fmt::Debug for DriveObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriveObjects").field("store", &self.store).finish_non_exhaustive()
    }
}
