//! The `object_store` crate's own suite for implementations, on a fresh drive of each.

use object_store::integration;
use ocssd_object_store::DriveObjects;
use ocssd_table_store::{Store, StoreOptions};

fn fresh() -> DriveObjects {
    let options = StoreOptions::parse("drive=cidr20,set.chunks_per_pu=40,set.sectors_per_chunk=384");
    let store = Store::open(&options.expect("options")).expect("a fresh drive in memory");
    DriveObjects::new(store).expect("there is room")
}

#[tokio::test]
async fn objects_are_put_got_listed_and_deleted() {
    integration::put_get_delete_list(&fresh()).await;
}

#[tokio::test]
async fn gets_and_puts_keep_their_conditions() {
    integration::get_opts(&fresh()).await;
    integration::put_opts(&fresh(), true).await;
}

#[tokio::test]
async fn attributes_come_back() {
    integration::put_get_attributes(&fresh()).await;
}

#[tokio::test]
async fn names_make_directories_and_nothing_else_does() {
    integration::list_uses_directories_correctly(&fresh()).await;
    integration::list_with_delimiter(&fresh()).await;
    integration::list_with_offset_exclusivity(&fresh()).await;
}

#[tokio::test]
async fn objects_are_renamed_and_copied() {
    integration::rename_and_copy(&fresh()).await;
    integration::copy_if_not_exists(&fresh()).await;
    integration::copy_rename_nonexistent_object(&fresh()).await;
}

#[tokio::test]
async fn long_objects_come_in_parts_in_any_order() {
    integration::stream_get(&fresh()).await;
    integration::multipart_out_of_order(&fresh()).await;
    integration::multipart_race_condition(&fresh(), true).await;
}
