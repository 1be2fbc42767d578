//! The model: requests are judged as the specification says, on the volatile zones.

use super::image::{Zone, ZoneChange};
use super::observed::ObservedZone;
use super::survivors::Survivor;
use crate::contract::{Answerer, Broken};
use crate::model::{Expected, Model, Pending, equal};
use ocssd_lightnvm::interface::zoned::{
    DescribedZone, UnwrittenRead, ZoneAction, ZoneDescriptor, ZoneExtension, ZoneGeometry, ZoneScope,
    ZoneState, ZonedAnswer, ZonedOp, ZonedReply, ZonedRequest,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{BufId, Buffers, Payload, Status, Tag};

/// The model of a zoned target.
#[derive(Clone, Debug)]
pub struct ZonedModel {
    pub(super) geometry: ZoneGeometry,
    pub(super) durable: Vec<Zone>,
    pub(super) volatile: Vec<Zone>,
    /// Changes with the zone they are of.
    pending: Pending<(usize, ZoneChange)>,
    /// Open zones, the one opened first in front: it is closed first.
    open: Vec<usize>,
}

fn index(value: u32) -> usize {
    usize::try_from(value).expect("32 bits fit an index")
}

pub(super) fn count(items: usize) -> u32 {
    u32::try_from(items).expect("a simulated target is small")
}

/// Where a report lies in a buffer.
fn whole(buffer: BufId, report: &[u8]) -> Content {
    let bytes = u32::try_from(report.len()).expect("a report is short");
    Content::Piece(Piece { buffer, first_byte: 0, bytes })
}

/// The zones of a report of either kind, those promised beside those found. One that a write opened may have been closed for
/// another, so the two states are taken for one.
fn same_zones<T: Entry>(
    promised: &[u8],
    found: List<T>,
    buffers: &Buffers,
    described: impl Fn(T) -> DescribedZone,
) -> Result<(), Broken> {
    let implicit = |state| matches!(state, ZoneState::ImplicitlyOpened | ZoneState::Closed);
    for (promised, found) in promised.chunks(T::BYTES).map(T::decode).zip(found.entries(buffers)) {
        let promised = described(promised.expect("the model encodes zones"));
        let found = found.map(&described);
        let same = found.is_some_and(|mut found| {
            let (mine, other) = (promised.zone.state, &mut found.zone.state);
            if implicit(*other) && implicit(mine) {
                *other = mine;
            }
            found == promised
        });
        if !same {
            return Err(Broken::new("a report", format!("{promised:?}"), format!("{found:?}")));
        }
    }
    Ok(())
}

impl ZonedModel {
    /// Empty zones.
    #[must_use]
    pub fn new(geometry: ZoneGeometry) -> Self {
        let zones = vec![Zone::EMPTY; index(geometry.zone_count)];
        Self {
            geometry,
            durable: zones.clone(),
            volatile: zones,
            pending: Pending::default(),
            open: Vec::new(),
        }
    }

    /// A zone as reads see it.
    #[must_use]
    pub fn zone(&self, zone: u32) -> &Zone {
        &self.volatile[index(zone)]
    }

    /// The target gave a zone up: it became read only or offline, which no power cut undoes.
    pub fn gave_up(&mut self, zone: u32, state: ZoneState) {
        assert!(matches!(state, ZoneState::ReadOnly | ZoneState::Offline), "a zone is given up as {state:?}");
        for zones in [&mut self.durable, &mut self.volatile] {
            (zones[index(zone)].state, zones[index(zone)].has_area) = (state, false);
        }
        self.sort_out();
    }

    /// Its zones and limits.
    #[must_use]
    pub const fn geometry(&self) -> &ZoneGeometry {
        &self.geometry
    }

    /// The blocks of a request, as content of its buffer: a block of stamps has a sector's place.
    pub(super) fn content(&self, request: &ZonedRequest, buffers: &Buffers) -> Content {
        let format = buffers.format();
        let block = match format.payload {
            Payload::Bytes => self.geometry.block_bytes,
            Payload::Stamp => u32::try_from(format.sector_bytes).expect("a sector is short"),
        };
        let buffer = request.buffer.expect("a read or write has a buffer");
        Content::Piece(Piece { buffer, first_byte: 0, bytes: request.count * block })
    }

    /// A zone as a report shows it.
    #[must_use]
    pub fn descriptor(&self, zone: u32) -> ZoneDescriptor {
        let (start, state) = (self.geometry.start_of(zone), self.zone(zone).state);
        let write_pointer = state.is_writable().then(|| start + self.zone(zone).written());
        let (capacity, has_extension) = (self.geometry.capacity_blocks, self.zone(zone).extension.is_some());
        ZoneDescriptor {
            state,
            capacity,
            start,
            write_pointer,
            has_extension,
            has_area: self.zone(zone).has_area,
        }
    }

    /// A zone as an extended report shows it.
    fn described(&self, zone: u32) -> DescribedZone {
        let extension = self.zone(zone).extension.unwrap_or(ZoneExtension::ZERO);
        DescribedZone { zone: self.descriptor(zone), extension }
    }

    /// The zone of an address, and the block in it.
    pub(super) fn place(&self, block: u64) -> Result<(usize, u64), Status> {
        let zone = self.geometry.zone_of(block).ok_or(Status::LBA_OUT_OF_RANGE)?;
        Ok((index(zone), block - self.geometry.start_of(zone)))
    }

    /// The zone that starts at an address.
    pub(super) fn zone_at(&self, block: u64) -> Result<usize, Status> {
        let (zone, within) = self.place(block)?;
        if within == 0 { Ok(zone) } else { Err(Status::INVALID_FIELD) }
    }

    fn active(&self) -> u32 {
        count(self.volatile.iter().filter(|zone| zone.state.is_active()).count())
    }

    /// Makes a zone open, if there are resources; closes an implicitly opened one if there are too few.
    pub(super) fn open(&mut self, zone: usize, how: ZoneState) -> Result<(), Status> {
        let state = self.volatile[zone].state;
        if !state.is_active() && self.active() >= self.geometry.active_bound() {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
        }
        if !state.is_open() && count(self.open.len()) >= self.geometry.open_bound() {
            let implicit = |&zone: &usize| self.volatile[zone].state == ZoneState::ImplicitlyOpened;
            let oldest = self.open.iter().position(implicit).ok_or(Status::TOO_MANY_OPEN_ZONES)?;
            let oldest = self.open.remove(oldest);
            self.volatile[oldest].state = ZoneState::Closed;
        }
        if !state.is_open() {
            self.open.push(zone);
        }
        let stays = state == ZoneState::ExplicitlyOpened;
        self.volatile[zone].state = if stays { state } else { how };
        Ok(())
    }

    /// Carries out a change that may survive.
    pub(super) fn change(&mut self, tag: Tag, zone: usize, change: ZoneChange, durability: Durability) {
        self.volatile[zone].change(&change, &self.geometry);
        self.pending.take(tag, (zone, change), durability);
        self.sort_out();
    }

    /// Zones that are not open any more leave the list.
    fn sort_out(&mut self) {
        let volatile = &self.volatile;
        self.open.retain(|&zone| volatile[zone].state.is_open());
    }

    fn write(
        &mut self,
        request: &ZonedRequest,
        durability: Durability,
        buffers: &Buffers,
    ) -> Result<u64, Status> {
        let is_append = matches!(request.op, ZonedOp::Append { .. });
        let (zone, within) = self.place(request.block)?;
        if request.count == 0
            || (is_append && (within != 0 || request.count > self.geometry.append_blocks_max))
        {
            return Err(Status::INVALID_FIELD);
        }
        let at = if is_append { self.volatile[zone].written() } else { within };
        if request
            .block
            .checked_add(u64::from(request.count))
            .is_none_or(|end| end > self.geometry.block_count())
        {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let (end, written) = (at + u64::from(request.count), self.volatile[zone].written());
        let area = self.area_of(zone);
        if is_append && area.is_some() {
            return Err(Status::INVALID_ZONE_OPERATION);
        }
        // Where it may start, and end.
        let within = area.map_or(written..=written, |_| written..=u64::MAX);
        let last = area.map_or(u64::MAX, |area| written + 2 * u64::from(area.blocks));
        match self.volatile[zone].state {
            ZoneState::Full => return Err(Status::ZONE_IS_FULL),
            ZoneState::ReadOnly => return Err(Status::ZONE_IS_READ_ONLY),
            ZoneState::Offline => return Err(Status::ZONE_IS_OFFLINE),
            _ if !within.contains(&at) || end > last => return Err(Status::ZONE_INVALID_WRITE),
            _ if end > self.geometry.capacity_blocks => return Err(Status::ZONE_BOUNDARY_ERROR),
            _ => {}
        }
        self.open(zone, ZoneState::ImplicitlyOpened)?;
        let content = self.content(request, buffers).gathered(buffers);
        let block = content.len() / index(request.count);
        let blocks = content.chunks(block).map(<[u8]>::to_vec).collect();
        let change = match area {
            None => ZoneChange::Written(blocks),
            Some(area) => ZoneChange::Placed { at, blocks, pointer: self.moved(written, end, area) },
        };
        self.change(request.tag, zone, change, durability);
        Ok(self.geometry.start_of(count(zone)) + at)
    }

    fn read(&self, request: &ZonedRequest, buffers: &Buffers) -> Result<Vec<u8>, Status> {
        let (zone, within) = self.place(request.block)?;
        let end = within + u64::from(request.count);
        if self.geometry.start_of(count(zone)) + end > self.geometry.block_count() {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let zone = &self.volatile[zone];
        if zone.state == ZoneState::Offline {
            return Err(Status::ZONE_IS_OFFLINE);
        }
        if end > self.geometry.zone_blocks {
            return Err(Status::ZONE_BOUNDARY_ERROR);
        }
        let is_missing = (within..end).any(|number| zone.block(number).is_none());
        if is_missing && self.geometry.unwritten_read == UnwrittenRead::Refused {
            return Err(Status::UNWRITTEN);
        }
        let bytes = index(self.content(request, buffers).bytes());
        let block = bytes / index(request.count).max(1);
        let unwritten = vec![0; block];
        let mut content = Vec::with_capacity(bytes);
        (within..end).for_each(|number| content.extend_from_slice(zone.block(number).unwrap_or(&unwritten)));
        Ok(content)
    }

    /// The zones an action is meant for if it is for all.
    fn chosen(&self, action: ZoneAction) -> Vec<usize> {
        let is_chosen = |state: ZoneState| match action {
            ZoneAction::Open => state == ZoneState::Closed,
            ZoneAction::Close => state.is_open(),
            ZoneAction::Finish => state.is_active(),
            ZoneAction::Reset => state.is_active() || state == ZoneState::Full,
            ZoneAction::Offline => state == ZoneState::ReadOnly,
        };
        (0..self.volatile.len()).filter(|&zone| is_chosen(self.volatile[zone].state)).collect()
    }

    fn manage(&mut self, tag: Tag, zone: usize, action: ZoneAction) -> Result<(), Status> {
        use ZoneState::{Closed, Empty, ExplicitlyOpened, Full, ImplicitlyOpened, Offline, ReadOnly};
        let refused = Err(Status::INVALID_ZONE_TRANSITION);
        match (action, self.volatile[zone].state) {
            (ZoneAction::Open, Empty | ImplicitlyOpened | ExplicitlyOpened | Closed) => {
                self.open(zone, ExplicitlyOpened)?;
            }
            (ZoneAction::Close, ImplicitlyOpened | ExplicitlyOpened | Closed) => {
                self.volatile[zone].state = Closed;
                self.sort_out();
            }
            (ZoneAction::Finish, Empty | ImplicitlyOpened | ExplicitlyOpened | Closed) => {
                self.change(tag, zone, ZoneChange::Finished, Durability::AtReply);
            }
            (ZoneAction::Reset, ImplicitlyOpened | ExplicitlyOpened | Closed | Full) => {
                self.change(tag, zone, ZoneChange::Reset, Durability::AtReply);
            }
            (ZoneAction::Offline, ReadOnly) => {
                self.change(tag, zone, ZoneChange::WentOffline, Durability::AtReply);
            }
            (ZoneAction::Finish, Full) | (ZoneAction::Reset, Empty) | (ZoneAction::Offline, Offline) => {}
            _ => return refused,
        }
        Ok(())
    }

    fn manage_all(&mut self, tag: Tag, action: ZoneAction) -> Result<(), Status> {
        let chosen = self.chosen(action);
        let opened = count(self.open.len() + chosen.len());
        if action == ZoneAction::Open && opened > self.geometry.open_bound() {
            return Err(Status::TOO_MANY_OPEN_ZONES);
        }
        chosen.into_iter().try_for_each(|zone| self.manage(tag, zone, action))
    }

    /// Sets the extension of the zone that starts at the address.
    fn describe(&mut self, request: &ZonedRequest, buffers: &Buffers) -> Result<(), Status> {
        let zone = self.zone_at(request.block)?;
        let list = request.buffer.map(|buffer| List::<ZoneExtension>::new(buffer, 1));
        let list = list.filter(|list| self.geometry.takes_extensions && list.lies_within(buffers));
        let extension = list.and_then(|list| list.get(buffers, 0)).ok_or(Status::INVALID_FIELD)?;
        if self.volatile[zone].state != ZoneState::Empty {
            return Err(Status::INVALID_ZONE_TRANSITION);
        }
        if self.active() >= self.geometry.active_bound() {
            return Err(Status::TOO_MANY_ACTIVE_ZONES);
        }
        self.change(request.tag, zone, ZoneChange::Described(extension), Durability::AtReply);
        Ok(())
    }

    fn report<T: Entry>(
        &self,
        request: &ZonedRequest,
        only: Option<ZoneState>,
        show: impl Fn(u32) -> T,
    ) -> Result<(List<T>, u32, Vec<u8>), Status> {
        let (first, _) = self.place(request.block)?;
        let is_meant = |&zone: &u32| only.is_none_or(|only| self.zone(zone).state == only);
        let matching: Vec<u32> = (count(first)..self.geometry.zone_count).filter(is_meant).collect();
        let listed = matching.len().min(index(request.count));
        let mut bytes = vec![0; listed * T::BYTES];
        for (&zone, place) in matching.iter().zip(bytes.chunks_mut(T::BYTES)) {
            show(zone).encode(place);
        }
        let buffer = request.buffer.expect("a report has a buffer");
        Ok((List::new(buffer, count(listed)), count(matching.len()), bytes))
    }

    /// Carries out a request: the answer, and the content with its place.
    fn carry_out(
        &mut self,
        request: &ZonedRequest,
        buffers: &Buffers,
    ) -> Result<(ZonedAnswer, Vec<u8>, Content), Status> {
        let nothing = (ZonedAnswer::Done, Vec::new(), Content::Empty);
        match request.op {
            ZonedOp::Read => {
                let content = self.read(request, buffers)?;
                return Ok((ZonedAnswer::Done, content, self.content(request, buffers)));
            }
            ZonedOp::Write { durability } => {
                self.write(request, durability, buffers)?;
            }
            ZonedOp::Append { durability } => {
                let block = self.write(request, durability, buffers)?;
                return Ok((ZonedAnswer::Appended { block }, Vec::new(), Content::Empty));
            }
            ZonedOp::Flush | ZonedOp::Shutdown => self.pending.take_flush(request.tag),
            ZonedOp::Manage { action, scope: ZoneScope::One } => {
                let zone = self.zone_at(request.block)?;
                self.manage(request.tag, zone, action)?;
            }
            ZonedOp::Manage { action, scope: ZoneScope::All } => self.manage_all(request.tag, action)?,
            ZonedOp::SetExtension => self.describe(request, buffers)?,
            ZonedOp::OpenWithArea => self.open_with_area(request)?,
            ZonedOp::CommitArea => self.commit_area(request)?,
            ZonedOp::Report { only } => {
                let (listed, matching, bytes) = self.report(request, only, |zone| self.descriptor(zone))?;
                let into = whole(listed.buffer, &bytes);
                return Ok((ZonedAnswer::Reported { listed, matching }, bytes, into));
            }
            ZonedOp::ReportExtended { .. } if !self.geometry.takes_extensions => {
                return Err(Status::INVALID_FIELD);
            }
            ZonedOp::ReportExtended { only } => {
                let (listed, matching, bytes) = self.report(request, only, |zone| self.described(zone))?;
                let into = whole(listed.buffer, &bytes);
                return Ok((ZonedAnswer::ReportedExtended { listed, matching }, bytes, into));
            }
        }
        Ok(nothing)
    }

    /// The changes of a zone, and whether each survives for sure.
    fn changes(&self, zone: usize) -> Vec<(&ZoneChange, bool)> {
        let of_zone = self.pending.iter().filter(|taken| taken.change.0 == zone);
        of_zone.map(|taken| (&taken.change.1, taken.is_durable)).collect()
    }

    /// What a power cut may leave of a zone.
    pub(super) fn legal(&self, zone: usize) -> Vec<Survivor> {
        Survivor::all(&self.durable[zone], &self.changes(zone), &self.geometry)
    }
}

impl Model for ZonedModel {
    type Request = ZonedRequest;
    type Reply = ZonedReply;
    type Observation = Vec<ObservedZone>;

    fn tag(request: &ZonedRequest) -> Tag {
        request.tag
    }

    fn reply_tag(reply: &ZonedReply) -> Tag {
        reply.tag
    }

    fn is_refused(reply: &ZonedReply) -> bool {
        !reply.status.is_success()
    }

    fn flush(tag: Tag) -> ZonedRequest {
        ZonedRequest { tag, op: ZonedOp::Flush, block: 0, count: 0, buffer: None }
    }

    fn apply(&mut self, request: &ZonedRequest, buffers: &Buffers) -> Expected<ZonedReply> {
        let tag = request.tag;
        match self.carry_out(request, buffers) {
            Ok((answer, content, into)) => {
                let reply = ZonedReply { tag, status: Status::SUCCESS, answer };
                Expected { reply, content, into }
            }
            Err(status) => Expected::plain(ZonedReply { tag, status, answer: ZonedAnswer::Done }),
        }
    }

    fn agrees(
        &self,
        expected: &Expected<ZonedReply>,
        reply: &ZonedReply,
        buffers: &Buffers,
    ) -> Result<(), Broken> {
        let plain = Expected::plain(expected.reply);
        match expected.reply.answer {
            ZonedAnswer::Reported { listed, .. } => {
                equal(&plain, reply, buffers)?;
                let described = |zone| DescribedZone { zone, extension: ZoneExtension::ZERO };
                same_zones(&expected.content, listed, buffers, described)
            }
            ZonedAnswer::ReportedExtended { listed, .. } => {
                equal(&plain, reply, buffers)?;
                same_zones(&expected.content, listed, buffers, |described| described)
            }
            ZonedAnswer::Done | ZonedAnswer::Appended { .. } => equal(expected, reply, buffers),
        }
    }

    fn answered(&mut self, reply: &ZonedReply) {
        if !reply.status.is_success() {
            return;
        }
        self.pending.answered(reply.tag);
        // A commit makes durable what it commits, and nothing else of an area.
        self.pending.spread(|later, earlier| {
            let is_area = matches!(earlier.1, ZoneChange::Placed { .. } | ZoneChange::Committed(_));
            later.0 == earlier.0 && !(is_area && matches!(later.1, ZoneChange::Committed(_)))
        });
        for (zone, change) in self.pending.take_durable() {
            self.durable[zone].change(&change, &self.geometry);
        }
    }

    fn observe(
        &self,
        target: &mut dyn Answerer<ZonedRequest, ZonedReply>,
    ) -> Result<Vec<ObservedZone>, Broken> {
        let count = self.geometry.zone_count;
        let sectors = List::<DescribedZone>::sectors(count, target.buffers());
        let buffer = target.buffers().take_whole(sectors);
        let op = ZonedOp::ReportExtended { only: None };
        let reply = target.ask(ZonedRequest { tag: Tag(0), op, block: 0, count, buffer: Some(buffer) })?;
        let listed = List::<DescribedZone>::new(buffer, count);
        let zones: Option<Vec<_>> = listed.entries(target.buffers()).collect();
        target.buffers().give_back(buffer);
        let whole = ZonedAnswer::ReportedExtended { listed, matching: count };
        let zones = zones.filter(|_| reply.status.is_success() && reply.answer == whole);
        let zones = zones.ok_or_else(|| Broken::new("a report", "all zones", format!("{reply:?}")))?;
        zones.into_iter().map(|zone| self.observe_zone(target, zone)).collect()
    }

    fn may_hold(&self, observation: &Vec<ObservedZone>) -> Result<(), Broken> {
        for (zone, found) in observation.iter().enumerate() {
            let legal = self.legal(zone);
            if self.found(zone, found, &legal).is_none() {
                let written: Vec<String> = legal.iter().map(Survivor::to_string).collect();
                let promised = format!("zone {zone} is {}, as written", written.join(", or "));
                let read = found.blocks.iter().filter(|block| block.is_some()).count();
                let found = format!("{:?}, {read} blocks readable", found.zone);
                return Err(Broken::new("what survives a power cut", promised, found));
            }
        }
        Ok(())
    }

    fn settle(&mut self, observation: &Vec<ObservedZone>) {
        for (zone, found) in observation.iter().enumerate() {
            let legal = self.legal(zone);
            let same = self.found(zone, found, &legal);
            self.volatile[zone] = same.expect("settled on what may not be: ask may_hold first");
        }
        self.durable.clone_from(&self.volatile);
        self.pending.clear();
        self.open.clear();
    }

    fn cut(&mut self) {
        for zone in 0..self.durable.len() {
            let sure = self.changes(zone).into_iter().filter(|change| change.1);
            let changes: Vec<ZoneChange> = sure.map(|(change, _)| change.clone()).collect();
            for change in &changes {
                self.durable[zone].change(change, &self.geometry);
            }
            self.durable[zone] = self.durable[zone].clone().after_cut(&self.geometry);
        }
        self.volatile.clone_from(&self.durable);
        self.pending.clear();
        self.open.clear();
    }
}
