//! `table-block`: tables and logs of [`lightlsm`](crate::lightlsm) on a block device: what a file system on an SSD is to RocksDB.
//!
//! It is an assembly: `lightlsm` as it is, on extents of a block target (`over_blocks`). A table is a list of extents, data are
//! written in place, and a journal says which tables there are: content goes to the block target's cache, and a page of the
//! journal is written with FUA behind a flush, as ext4 does in its ordered mode. Deliberately not here: tables and their journal
//! (`lightlsm`), small files that share an extent.

mod options;

use crate::lightlsm::{LightLsm, Medium};
use crate::over_blocks::{Above, Cut, OverBlocks};
use ocssd_lightnvm::interface::table::{
    TableAnswer, TableLimits, TableOp, TableReply, TableRequest, TableTarget,
};
use ocssd_lightnvm::{BlockingDevice, PuId, Status, Tag};

pub use options::Options;

/// Tables and logs on a block device.
pub type TablesOverBlock = OverBlocks<LightLsm>;

impl Above for LightLsm {
    type Options = crate::lightlsm::Options;
    const KEEPS: &'static str = "tables and logs";
    /// Chosen: of a table half an extent stays empty, and a block target of 4 GiB has extents of 2 MiB, RocksDB's smallest tables.
    const CUT: Cut = Cut { extents: 2048, units_min: 2, writes_blocks: true, names_content: true };

    fn mount(
        device: &mut dyn BlockingDevice,
        options: &Self::Options,
        stated: &[(String, String)],
    ) -> Result<(Self, Vec<String>), String> {
        assert_eq!(options.medium, Medium::Extents, "tables on extents are told so");
        let (tables, report) = Self::mount(device, &[PuId(0)], options).map_err(|error| error.to_string())?;
        let notes = tables.notes(&report, device.geometry(), stated);
        Ok((tables, notes))
    }

    fn shutdown_of(request: &TableRequest) -> Option<Tag> {
        (request.op == TableOp::Shutdown).then_some(request.tag)
    }

    fn end_of(reply: &TableReply) -> (Tag, Status) {
        (reply.tag, reply.status)
    }

    fn shut_down(tag: Tag, status: Status) -> TableReply {
        TableReply { status, ..TableReply::success(tag, TableAnswer::Done) }
    }
}

impl TableTarget for TablesOverBlock {
    fn limits(&self) -> TableLimits {
        self.above().limits()
    }
}
