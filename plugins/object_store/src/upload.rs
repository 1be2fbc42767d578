//! An object that comes in parts, in any order: those that follow what is there are written, the others wait in memory.

use crate::DriveObjects;
use crate::objects::{after_a_bug, failed};
use async_trait::async_trait;
use object_store::path::Path;
use object_store::{Error, MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use ocssd_table_store::{Replace, Writer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// What parts come together in.
struct Parts {
    /// `None` once the upload has ended.
    writer: Option<Writer>,
    /// The next part to be written.
    next: usize,
    /// Parts behind it.
    waiting: BTreeMap<usize, PutPayload>,
}

impl Parts {
    /// A part has come.
    fn add(&mut self, part: usize, payload: PutPayload, to: &Path) -> Result<()> {
        let Some(writer) = &self.writer else {
            return Err(ended(to));
        };
        self.waiting.insert(part, payload);
        while let Some(payload) = self.waiting.remove(&self.next) {
            for bytes in &payload {
                writer.append(bytes).map_err(|error| failed(error, to.as_ref()))?;
            }
            self.next += 1;
        }
        Ok(())
    }
}

fn ended(to: &Path) -> Error {
    let source = format!("the upload of {to} has ended").into();
    Error::Generic { store: "open-channel drive", source }
}

/// An upload.
pub struct Upload {
    objects: DriveObjects,
    to: Path,
    parts: Arc<Mutex<Parts>>,
    /// Parts that were announced.
    announced: usize,
}

impl Upload {
    /// Nothing has come yet.
    pub fn new(objects: DriveObjects, to: Path, writer: Writer) -> Self {
        let parts = Parts { writer: Some(writer), next: 0, waiting: BTreeMap::new() };
        Self { objects, to, parts: Arc::new(Mutex::new(parts)), announced: 0 }
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let (parts, to, part) = (Arc::clone(&self.parts), self.to.clone(), self.announced);
        self.announced += 1;
        Box::pin(async move { parts.lock().map_err(|_| after_a_bug())?.add(part, payload, &to) })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let mut parts = self.parts.lock().map_err(|_| after_a_bug())?;
        if parts.next < self.announced {
            let source = format!("part {} of {} was not written", parts.next, self.to).into();
            return Err(Error::Generic { store: "open-channel drive", source });
        }
        let writer = parts.writer.take().ok_or_else(|| ended(&self.to))?;
        self.objects.finish(writer, &self.to, Replace::Anything)
    }

    async fn abort(&mut self) -> Result<()> {
        let mut parts = self.parts.lock().map_err(|_| after_a_bug())?;
        // Dropped, it is given up.
        parts.writer.take().map(drop).ok_or_else(|| ended(&self.to))
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("to", &self.to).finish_non_exhaustive()
    }
}
