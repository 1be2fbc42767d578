//! Any bytes as what a guest does to an NVMe controller on PCI: never a panic, no work without end, nothing kept.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ocssd_export::fuzz::pci_nvme_guest(data);
});
