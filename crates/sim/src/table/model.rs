//! The model: edits survive in order, tables with them, and of a log its first bytes.

use super::image::{Edit, Item, LogBytes, ObservedTable, Shelf};
use crate::contract::{Answerer, Broken};
use crate::model::{Expected, Model, Pending, equal};
use ocssd_lightnvm::interface::table::{
    EditOp, TableAnswer, TableEdit, TableEntry, TableId, TableKind, TableLimits, TableOp, TableRefusal,
    TableReply, TableRequest,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{Buffers, Tag};
use std::collections::BTreeMap;

/// The model of a table target.
#[derive(Clone, Debug)]
pub struct TableModel {
    limits: TableLimits,
    pub(super) durable: Shelf,
    volatile: Shelf,
    /// Tables that are not published.
    open: BTreeMap<TableId, Vec<u8>>,
    /// Logs by the number of their creation, those included that an undone deletion would bring back.
    pub(super) logs: BTreeMap<u64, LogBytes>,
    /// Edits, each with all its rows.
    pub(super) edits: Pending<Vec<Edit>>,
    /// Appends to logs: the number of the log, and its length behind them.
    appends: Pending<(u64, usize)>,
    next_log: u64,
}

type Refused = (TableRefusal, Option<u32>);

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

fn place(value: u64) -> usize {
    usize::try_from(value).expect("a simulated table is small")
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a simulated table is small")
}

/// The bytes of a request's content; tables have no stages.
fn content(content: &Content, buffers: &Buffers) -> Result<Vec<u8>, TableRefusal> {
    let fits = !matches!(content, Content::Staged { .. }) && content.lies_within(buffers);
    fits.then(|| content.gathered(buffers)).ok_or(TableRefusal::BadContent)
}

impl TableModel {
    /// An empty target.
    #[must_use]
    pub fn new(limits: TableLimits) -> Self {
        Self {
            limits,
            durable: Shelf::default(),
            volatile: Shelf::default(),
            open: BTreeMap::new(),
            logs: BTreeMap::new(),
            edits: Pending::default(),
            appends: Pending::default(),
            next_log: 0,
        }
    }

    /// What the target takes.
    #[must_use]
    pub const fn limits(&self) -> &TableLimits {
        &self.limits
    }

    /// Names that are taken, published ones and logs first.
    pub fn names(&self) -> impl Iterator<Item = TableId> {
        self.volatile.items.keys().chain(self.open.keys()).copied()
    }

    /// Bytes of all tables and logs.
    fn live_bytes(&self) -> u64 {
        let published = self.volatile.items.values().map(|(item, _)| self.bytes_of(item).len());
        published.chain(self.open.values().map(Vec::len)).map(|bytes| bytes as u64).sum()
    }

    fn bytes_of<'a>(&'a self, item: &'a Item) -> &'a [u8] {
        match item {
            Item::Table(bytes) => bytes,
            Item::Log(number) => &self.logs[number].bytes,
        }
    }

    fn create(
        &mut self,
        tag: Tag,
        table: TableId,
        kind: TableKind,
        bytes: u64,
    ) -> Result<TableAnswer, TableRefusal> {
        if self.names().any(|name| name == table) {
            return Err(TableRefusal::NameTaken);
        }
        if self.names().count() >= index(self.limits.tables_max) {
            return Err(TableRefusal::TooManyTables);
        }
        if bytes > self.limits.table_bytes_max {
            return Err(TableRefusal::TooLong);
        }
        if self.live_bytes() + bytes > self.limits.capacity_bytes {
            return Err(TableRefusal::NoRoom);
        }
        match kind {
            TableKind::Table => {
                self.open.insert(table, Vec::new());
            }
            TableKind::Log => {
                self.logs.insert(self.next_log, LogBytes::default());
                self.edit(tag, vec![Edit::Created(table, self.next_log)], Durability::AtFlush);
                self.next_log += 1;
            }
        }
        Ok(TableAnswer::Done)
    }

    fn edit(&mut self, tag: Tag, edits: Vec<Edit>, durability: Durability) {
        edits.iter().for_each(|edit| self.volatile.change(edit));
        self.edits.take(tag, edits, durability);
    }

    fn append(
        &mut self,
        tag: Tag,
        table: TableId,
        added: &[u8],
        durability: Durability,
    ) -> Result<TableAnswer, TableRefusal> {
        let has_room = self.live_bytes() + added.len() as u64 <= self.limits.capacity_bytes;
        let (number, bytes) = match (self.volatile.items.get(&table), self.open.get_mut(&table)) {
            (Some((Item::Log(number), _)), _) => {
                (Some(*number), &mut self.logs.get_mut(number).expect("a log has bytes").bytes)
            }
            (Some((Item::Table(_), _)), _) => return Err(TableRefusal::IsPublished),
            (None, Some(bytes)) => (None, bytes),
            (None, None) => return Err(TableRefusal::NoSuchTable),
        };
        if (bytes.len() + added.len()) as u64 > self.limits.table_bytes_max {
            return Err(TableRefusal::TooLong);
        }
        if !has_room {
            return Err(TableRefusal::NoRoom);
        }
        let offset = bytes.len() as u64;
        bytes.extend_from_slice(added);
        let end = bytes.len();
        if let Some(number) = number {
            self.appends.take(tag, (number, end), durability);
        }
        Ok(TableAnswer::Appended { offset })
    }

    fn sync(&mut self, tag: Tag, table: TableId) -> Result<TableAnswer, TableRefusal> {
        match self.volatile.items.get(&table) {
            Some((Item::Log(number), _)) => {
                self.appends.take(tag, (*number, self.logs[number].bytes.len()), Durability::AtReply);
                Ok(TableAnswer::Done)
            }
            Some(_) => Err(TableRefusal::WrongKind),
            None if self.open.contains_key(&table) => Err(TableRefusal::WrongKind),
            None => Err(TableRefusal::NoSuchTable),
        }
    }

    /// What a row changes, if the rows above left `shelf` and `open`.
    fn row(
        &self,
        row: &TableEdit,
        attributes: &[u8],
        shelf: &Shelf,
        open: &BTreeMap<TableId, Vec<u8>>,
    ) -> Result<Edit, TableRefusal> {
        let (from, bytes) = (index(row.attributes_first), index(row.attributes_bytes));
        let of_row = attributes.get(from..from + bytes).ok_or(TableRefusal::BadEdit)?.to_vec();
        if row.attributes_bytes > self.limits.attributes_bytes_max {
            return Err(TableRefusal::AttributesTooLong);
        }
        let (item, unpublished) = (shelf.items.get(&row.table), open.get(&row.table));
        match (row.op, item, unpublished) {
            (_, None, None) => Err(TableRefusal::NoSuchTable),
            (EditOp::Publish, _, Some(bytes)) => Ok(Edit::Published(row.table, bytes.clone(), of_row)),
            (EditOp::Publish, Some((Item::Log(_), _)), _) => Err(TableRefusal::WrongKind),
            (EditOp::Publish, ..) => Err(TableRefusal::IsPublished),
            (EditOp::Delete, ..) if bytes > 0 => Err(TableRefusal::BadEdit),
            (EditOp::Delete, ..) => Ok(Edit::Deleted(row.table)),
            (EditOp::Describe, Some(_), _) => Ok(Edit::Described(row.table, of_row)),
            (EditOp::Describe, None, _) => Err(TableRefusal::NotPublished),
        }
    }

    fn rows(&mut self, tag: Tag, rows: &[TableEdit], attributes: &[u8]) -> Result<TableAnswer, Refused> {
        let (mut shelf, mut open, mut edits) = (self.volatile.clone(), self.open.clone(), Vec::new());
        for (nth, row) in (0..).zip(rows) {
            let edit = self.row(row, attributes, &shelf, &open).map_err(|refusal| (refusal, Some(nth)))?;
            let was_open = open.remove(&row.table).is_some();
            shelf.change(&edit);
            // A table nobody saw is given up without a trace.
            if !(was_open && row.op == EditOp::Delete) {
                edits.push(edit);
            }
        }
        self.open = open;
        self.edit(tag, edits, Durability::AtReply);
        Ok(TableAnswer::Done)
    }

    /// An edit of one row that comes as a request of its own.
    fn one(
        &mut self,
        tag: Tag,
        op: EditOp,
        table: TableId,
        attributes: &[u8],
    ) -> Result<TableAnswer, Refused> {
        let row = TableEdit { op, table, attributes_first: 0, attributes_bytes: length(attributes) };
        self.rows(tag, &[row], attributes).map_err(|(refusal, _)| (refusal, None))
    }

    /// The rows of an edit.
    fn edit_list(
        &self,
        edits: List<TableEdit>,
        buffers: &Buffers,
    ) -> Result<Vec<Option<TableEdit>>, TableRefusal> {
        if edits.count > self.limits.edits_max {
            return Err(TableRefusal::TooManyEdits);
        }
        edits.lies_within(buffers).then(|| edits.entries(buffers).collect()).ok_or(TableRefusal::BadEdit)
    }

    fn whole_edit(
        &mut self,
        tag: Tag,
        edits: List<TableEdit>,
        attributes: &Content,
        buffers: &Buffers,
    ) -> Result<TableAnswer, Refused> {
        let alone = |refusal| (refusal, None);
        let rows = self.edit_list(edits, buffers).map_err(alone)?;
        let attributes = content(attributes, buffers).map_err(alone)?;
        if let Some(bad) = rows.iter().position(Option::is_none) {
            return Err((TableRefusal::BadEdit, u32::try_from(bad).ok()));
        }
        let rows: Vec<TableEdit> = rows.into_iter().flatten().collect();
        self.rows(tag, &rows, &attributes)
    }

    fn carry_out(&mut self, request: &TableRequest, buffers: &Buffers) -> Result<TableAnswer, Refused> {
        let (tag, alone) = (request.tag, |refusal| (refusal, None));
        match request.op {
            TableOp::Create { table, kind, bytes_expected, .. } => {
                self.create(tag, table, kind, bytes_expected).map_err(alone)
            }
            TableOp::Append { table, content: added, durability } => {
                let added = content(&added, buffers).map_err(alone)?;
                self.append(tag, table, &added, durability).map_err(alone)
            }
            TableOp::Sync { table } => self.sync(tag, table).map_err(alone),
            TableOp::Publish { table, attributes } => {
                let attributes = content(&attributes, buffers).map_err(alone)?;
                self.one(tag, EditOp::Publish, table, &attributes)
            }
            TableOp::Delete { table } => self.one(tag, EditOp::Delete, table, &[]),
            TableOp::Edit { edits, attributes } => self.whole_edit(tag, edits, &attributes, buffers),
            TableOp::Flush | TableOp::Shutdown => {
                self.edits.take_flush(tag);
                self.appends.take_flush(tag);
                Ok(TableAnswer::Done)
            }
            TableOp::Read { .. } | TableOp::Attributes { .. } | TableOp::List { .. } => {
                unreachable!("what reads has content")
            }
        }
    }

    fn published(&self, table: TableId) -> Result<&(Item, Vec<u8>), TableRefusal> {
        let is_open = self.open.contains_key(&table);
        let missing = if is_open { TableRefusal::NotPublished } else { TableRefusal::NoSuchTable };
        self.volatile.items.get(&table).ok_or(missing)
    }

    /// Answer and content of what reads.
    fn look(
        &self,
        op: &TableOp,
        buffers: &Buffers,
    ) -> Result<Option<(TableAnswer, Vec<u8>, Content)>, TableRefusal> {
        match *op {
            TableOp::Read { table, offset, into } => {
                content(&into, buffers)?;
                let bytes = self.bytes_of(&self.published(table)?.0);
                let from = place(offset.min(bytes.len() as u64));
                let read: Vec<u8> = bytes[from..].iter().copied().take(index(into.bytes())).collect();
                Ok(Some((TableAnswer::Read { bytes: length(&read) }, read, into)))
            }
            TableOp::Attributes { table, into } => {
                content(&into, buffers)?;
                let attributes = &self.published(table)?.1;
                let read = attributes.iter().copied().take(index(into.bytes())).collect();
                Ok(Some((TableAnswer::Attributes { bytes: length(attributes) }, read, into)))
            }
            TableOp::List { from, into } => self.list(from, into, buffers).map(Some),
            _ => Ok(None),
        }
    }

    fn list(
        &self,
        from: TableId,
        into: List<TableEntry>,
        buffers: &Buffers,
    ) -> Result<(TableAnswer, Vec<u8>, Content), TableRefusal> {
        if !into.lies_within(buffers) {
            return Err(TableRefusal::BadContent);
        }
        let matching = self.volatile.items.range(from..);
        let count = matching.clone().count();
        let mut bytes = vec![0; count.min(index(into.count)) * TableEntry::BYTES];
        for ((table, (item, attributes)), place) in matching.zip(bytes.chunks_mut(TableEntry::BYTES)) {
            let kind = if matches!(item, Item::Log(_)) { TableKind::Log } else { TableKind::Table };
            let (length, attributes_bytes) = (self.bytes_of(item).len() as u64, length(attributes));
            TableEntry { table: *table, kind, bytes: length, attributes_bytes }.encode(place);
        }
        let listed =
            List::new(into.buffer, length(&bytes) / u32::try_from(TableEntry::BYTES).expect("short"));
        let matching = u32::try_from(count).expect("a simulated target is small");
        let to = Content::Piece(Piece { buffer: into.buffer, first_byte: 0, bytes: length(&bytes) });
        Ok((TableAnswer::Listed { listed, matching }, bytes, to))
    }

    /// The shelf that shows what was found, among those with the first edits that may have survived.
    fn find(&self, found: &BTreeMap<TableId, ObservedTable>) -> Option<Shelf> {
        let durable = self.edits.iter().take_while(|taken| taken.is_durable).count();
        let mut shelf = self.durable.clone();
        for (nth, taken) in self.edits.iter().map(Some).chain([None]).enumerate() {
            if nth >= durable && self.shows(&shelf, found) {
                return Some(shelf);
            }
            taken.inspect(|taken| taken.change.iter().for_each(|edit| shelf.change(edit)));
        }
        None
    }

    fn shows(&self, shelf: &Shelf, found: &BTreeMap<TableId, ObservedTable>) -> bool {
        let same = |(table, found): (&TableId, &ObservedTable)| match shelf.items.get(table) {
            Some((Item::Table(bytes), attributes)) => {
                let ObservedTable { kind, bytes: read, attributes: told } = found;
                (*kind, read, told) == (TableKind::Table, bytes, attributes)
            }
            Some((Item::Log(number), attributes)) => {
                let log = &self.logs[number];
                found.kind == TableKind::Log
                    && found.attributes == *attributes
                    && found.bytes.len() >= log.synced
                    && log.bytes.starts_with(&found.bytes)
            }
            None => false,
        };
        shelf.items.len() == found.len() && found.iter().all(same)
    }

    /// What is durable of logs, and of edits before what is durable, is noted.
    fn spread(&mut self) {
        for taken in self.appends.iter().filter(|taken| taken.is_durable) {
            let (number, end) = taken.change;
            let log = self.logs.get_mut(&number).expect("a log has bytes");
            log.synced = log.synced.max(end);
            let creates = |edit: &Edit| matches!(edit, Edit::Created(_, created) if *created == number);
            for edit in self.edits.iter_mut().filter(|edit| edit.change.iter().any(creates)) {
                edit.is_durable = true;
            }
        }
        self.edits.spread(|_, _| true);
        self.appends.take_durable();
    }
}

/// Reads one thing of a listing.
fn observe_one(
    target: &mut dyn Answerer<TableRequest, TableReply>,
    entry: TableEntry,
    room: Piece,
) -> Result<ObservedTable, Broken> {
    let bad =
        |reply: TableReply| Broken::new("a listed table can be read", "its bytes", format!("{reply:?}"));
    let op = TableOp::Read { table: entry.table, offset: 0, into: Content::Piece(room) };
    let reply = target.ask(TableRequest { tag: Tag(0), op })?;
    let TableAnswer::Read { bytes } = reply.answer else { return Err(bad(reply)) };
    let content = Content::Piece(Piece { bytes, ..room }).gathered(target.buffers());
    let op = TableOp::Attributes { table: entry.table, into: Content::Piece(room) };
    let reply = target.ask(TableRequest { tag: Tag(0), op })?;
    let TableAnswer::Attributes { bytes: told } = reply.answer else { return Err(bad(reply)) };
    if (u64::from(bytes), told) != (entry.bytes, entry.attributes_bytes) {
        let promised = format!("{} bytes and {} of attributes", entry.bytes, entry.attributes_bytes);
        return Err(Broken::new("a listing tells lengths", promised, format!("{bytes} and {told}")));
    }
    let attributes = Content::Piece(Piece { bytes: told, ..room }).gathered(target.buffers());
    Ok(ObservedTable { kind: entry.kind, bytes: content, attributes })
}

impl Model for TableModel {
    type Request = TableRequest;
    type Reply = TableReply;
    type Observation = BTreeMap<TableId, ObservedTable>;

    fn tag(request: &TableRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &TableReply) -> Tag {
        reply.tag
    }

    fn is_refused(reply: &TableReply) -> bool {
        !reply.status.is_success()
    }

    fn flush(tag: Tag) -> TableRequest {
        TableRequest { tag, op: TableOp::Flush }
    }

    fn apply(&mut self, request: &TableRequest, buffers: &Buffers) -> Expected<TableReply> {
        let tag = request.tag;
        let refused = |refusal, row| Expected::plain(TableReply::refused(tag, refusal, row));
        match self.look(&request.op, buffers) {
            Err(refusal) => return refused(refusal, None),
            Ok(Some((answer, content, into))) => {
                return Expected { reply: TableReply::success(tag, answer), content, into };
            }
            Ok(None) => {}
        }
        match self.carry_out(request, buffers) {
            Ok(answer) => Expected::plain(TableReply::success(tag, answer)),
            Err((refusal, row)) => refused(refusal, row),
        }
    }

    fn agrees(
        &self,
        expected: &Expected<TableReply>,
        reply: &TableReply,
        buffers: &Buffers,
    ) -> Result<(), Broken> {
        equal(expected, reply, buffers)
    }

    fn answered(&mut self, reply: &TableReply) {
        if !reply.status.is_success() {
            return;
        }
        self.edits.answered(reply.tag);
        self.appends.answered(reply.tag);
        self.spread();
        for edits in self.edits.take_durable() {
            edits.iter().for_each(|edit| self.durable.change(edit));
        }
    }

    fn observe(
        &self,
        target: &mut dyn Answerer<TableRequest, TableReply>,
    ) -> Result<Self::Observation, Broken> {
        let count = self.limits.tables_max;
        let sector = u32::try_from(target.buffers().format().sector_bytes).expect("a sector is short");
        let bytes = u32::try_from(self.limits.table_bytes_max).expect("a simulated table is small");
        let bytes = bytes.max(self.limits.attributes_bytes_max);
        let sectors = List::<TableEntry>::sectors(count, target.buffers());
        let (list, buffer) =
            (target.buffers().take_whole(sectors), target.buffers().take_whole(bytes.div_ceil(sector)));
        let op = TableOp::List { from: TableId(0), into: List::new(list, count) };
        let reply = target.ask(TableRequest { tag: Tag(0), op })?;
        let TableAnswer::Listed { listed, .. } = reply.answer else {
            return Err(Broken::new("a listing", "all tables and logs", format!("{reply:?}")));
        };
        let entries: Vec<TableEntry> = listed.entries(target.buffers()).flatten().collect();
        let room = Piece { buffer, first_byte: 0, bytes };
        let mut found = BTreeMap::new();
        for entry in entries {
            found.insert(entry.table, observe_one(target, entry, room)?);
        }
        target.buffers().give_back(list);
        target.buffers().give_back(buffer);
        Ok(found)
    }

    fn may_hold(&self, found: &Self::Observation) -> Result<(), Broken> {
        if self.find(found).is_some() {
            return Ok(());
        }
        let durable = self.edits.iter().take_while(|taken| taken.is_durable).count();
        let promised = format!(
            "what the first {durable} to {} edits leave of tables {:?}",
            self.edits.len(),
            self.durable.items.keys()
        );
        let told: Vec<String> = found
            .iter()
            .map(|(table, found)| format!("{} of {} bytes", table.0, found.bytes.len()))
            .collect();
        Err(Broken::new("what survives a power cut", promised, told.join(", ")))
    }

    fn settle(&mut self, found: &Self::Observation) {
        let shelf = self.find(found).expect("settled on what may not be: ask may_hold first");
        let logs = shelf.items.iter().filter_map(|(table, (item, _))| match item {
            Item::Log(number) => Some((*number, found[table].bytes.clone())),
            Item::Table(_) => None,
        });
        self.logs = logs.map(|(number, bytes)| (number, LogBytes { synced: bytes.len(), bytes })).collect();
        (self.durable, self.volatile) = (shelf.clone(), shelf);
        self.open.clear();
        self.edits.clear();
        self.appends.clear();
    }

    fn cut(&mut self) {
        for taken in self.edits.iter().filter(|taken| taken.is_durable) {
            taken.change.iter().for_each(|edit| self.durable.change(edit));
        }
        for log in self.logs.values_mut() {
            log.bytes.truncate(log.synced);
        }
        self.volatile = self.durable.clone();
        self.open.clear();
        self.edits.clear();
        self.appends.clear();
    }
}
