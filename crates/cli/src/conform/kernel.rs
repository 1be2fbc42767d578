//! A controller that Linux's own driver has.

use super::transport::Transport;
use anyhow::{Context, Result};
use ocssd_measure::storage::{NvmeDevice, Passed, PassedCommand, PassthroughQueue};
use ocssd_nvme::status::StatusField;
use ocssd_nvme::{Cqe, Sqe};

impl Transport for NvmeDevice {
    fn admin(&mut self, sqe: Sqe, bytes: usize) -> Result<(Vec<u8>, Cqe)> {
        bring(self, PassthroughQueue::Admin, &sqe, bytes)
    }

    fn read(&mut self, sqe: Sqe, bytes: usize) -> Result<(Vec<u8>, Cqe)> {
        bring(self, PassthroughQueue::Io, &sqe, bytes)
    }

    fn write(&mut self, sqe: Sqe, data: &[u8]) -> Result<Cqe> {
        let passed = NvmeDevice::write(self, PassthroughQueue::Io, passed_command(&sqe), data);
        Ok(completion(passed.with_context(|| not_sent(&sqe))?))
    }
}

fn bring(device: &NvmeDevice, queue: PassthroughQueue, sqe: &Sqe, bytes: usize) -> Result<(Vec<u8>, Cqe)> {
    let mut data = vec![0; bytes];
    let passed = device.read(queue, passed_command(sqe), &mut data).with_context(|| not_sent(sqe))?;
    Ok((data, completion(passed)))
}

fn not_sent(sqe: &Sqe) -> String {
    format!("the kernel did not send a command of opcode {:02X}h to namespace {}", sqe.opcode, sqe.nsid)
}

/// The kernel makes the rest: identifier and pointers.
const fn passed_command(sqe: &Sqe) -> PassedCommand {
    PassedCommand {
        opcode: sqe.opcode,
        nsid: sqe.nsid,
        cdw2_3: [sqe.cdw2, sqe.cdw3],
        cdw10_15: [sqe.cdw10, sqe.cdw11, sqe.cdw12, sqe.cdw13, sqe.cdw14, sqe.cdw15],
    }
}

/// What the kernel keeps of a completion; which queue it came from is not told.
fn completion(passed: Passed) -> Cqe {
    let [dw0, dw1] = [passed.result & u64::from(u32::MAX), passed.result >> 32];
    let narrow = |dword| u32::try_from(dword).expect("a dword");
    Cqe {
        dw0: narrow(dw0),
        dw1: narrow(dw1),
        sqhd: 0,
        sqid: 0,
        cid: 0,
        phase: false,
        status: StatusField::from_bits(passed.status),
    }
}
