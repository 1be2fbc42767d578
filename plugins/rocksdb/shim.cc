// The C++ side of the plugin: RocksDB's classes around the C functions of src/, and their registration as lightlsm://.
//
// No state of its own but what RocksDB tells a file before it writes. Compiles against RocksDB 7.8 and later ones.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/utilities/object_registry.h"
#include "rocksdb/version.h"

extern "C" {
struct LightFs;
struct LightWriter;
struct LightReader;
struct LightMap;
const char* lightlsm_error();
int lightlsm_open(const char*, size_t, LightFs**);
void lightlsm_close(LightFs*);
int lightlsm_space(const LightFs*, uint64_t*, uint64_t*);
int lightlsm_status(const LightFs*, const char*, size_t, uint64_t*, uint64_t*, int*);
int lightlsm_children(const LightFs*, const char*, size_t, void (*)(void*, const char*, size_t), void*);
int lightlsm_delete(const LightFs*, const char*, size_t);
int lightlsm_create_dir(const LightFs*, const char*, size_t, int);
int lightlsm_delete_dir(const LightFs*, const char*, size_t);
int lightlsm_rename(const LightFs*, const char*, size_t, const char*, size_t);
int lightlsm_lock(const LightFs*, const char*, size_t, int);
int lightlsm_sync_names(const LightFs*);
int lightlsm_create(const LightFs*, const char*, size_t, int, LightWriter**);
int lightlsm_hint(const LightWriter*, uint8_t, uint8_t, uint64_t);
int lightlsm_append(const LightWriter*, const char*, size_t);
int lightlsm_flush(const LightWriter*);
int lightlsm_sync(const LightWriter*);
int lightlsm_truncate(const LightWriter*, uint64_t);
uint64_t lightlsm_written(const LightWriter*);
int lightlsm_close_writer(LightWriter*);
void lightlsm_free_writer(LightWriter*);
int lightlsm_open_file(const LightFs*, const char*, size_t, LightReader**);
int lightlsm_read(const LightReader*, uint64_t, char*, size_t, size_t*);
uint64_t lightlsm_readable(const LightReader*);
void lightlsm_free_reader(LightReader*);
int lightlsm_map(const LightFs*, const char*, size_t, LightMap**, const char**, size_t*);
void lightlsm_unmap(LightMap*);
}

namespace {

using namespace ROCKSDB_NAMESPACE;

// The numbers of lib.rs, `code`.
enum Code { kDone = 0, kNotFound, kExists, kNoSpace, kBusy, kInvalid, kNotSupported, kCorrupt, kIo };

IOStatus StatusOf(int code) {
  if (code == kDone) return IOStatus::OK();
  const char* sentence = lightlsm_error();
  switch (code) {
    case kNotFound:
      return IOStatus::PathNotFound(sentence);
    case kNoSpace: {
      // As the POSIX file system has it: RocksDB goes on by itself once files were deleted.
      IOStatus full = IOStatus::NoSpace(sentence);
      full.SetRetryable(true);
      return full;
    }
    case kInvalid:
      return IOStatus::InvalidArgument(sentence);
    case kNotSupported:
      return IOStatus::NotSupported(sentence);
    case kCorrupt:
      return IOStatus::Corruption(sentence);
    default:
      return IOStatus::IOError(sentence);
  }
}

// Streams: 0 says nothing, 1 is flushes, and from 2 on every thread that compacts has one.
uint8_t StreamOf(Env::IOPriority priority) {
  static std::atomic<unsigned> threads{0};
  thread_local unsigned thread = threads.fetch_add(1);
  if (priority == Env::IO_HIGH) return 1;
  if (priority == Env::IO_LOW) return static_cast<uint8_t>(2 + thread % 64);
  return 0;
}

// RocksDB's hint is NONE, SHORT, MEDIUM, LONG or EXTREME; it gives L0 and L1 MEDIUM, and each level below one more.
uint8_t LevelOf(Env::WriteLifeTimeHint hint) {
  return hint < Env::WLTH_MEDIUM ? 0 : static_cast<uint8_t>(1 + hint - Env::WLTH_MEDIUM);
}

class LightWritableFile final : public FSWritableFile {
 public:
  LightWritableFile(LightWriter* writer, const FileOptions& options) : FSWritableFile(options), writer_(writer) {}
  ~LightWritableFile() override { lightlsm_free_writer(writer_); }

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    if (!hinted_) {
      hinted_ = true;
      lightlsm_hint(writer_, LevelOf(write_hint_), StreamOf(io_priority_), preallocation_block_size());
    }
    return StatusOf(lightlsm_append(writer_, data.data(), data.size()));
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    return StatusOf(lightlsm_truncate(writer_, size));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return StatusOf(lightlsm_close_writer(writer_)); }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return StatusOf(lightlsm_flush(writer_)); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return StatusOf(lightlsm_sync(writer_)); }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return lightlsm_written(writer_); }
  // Called for every block of a table; chunks are taken whole anyway.
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}

 private:
  LightWriter* writer_;
  bool hinted_ = false;
};

class LightSequentialFile final : public FSSequentialFile {
 public:
  explicit LightSequentialFile(LightReader* reader) : reader_(reader) {}
  ~LightSequentialFile() override { lightlsm_free_reader(reader_); }

  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch, IODebugContext*) override {
    size_t read = 0;
    IOStatus status = StatusOf(lightlsm_read(reader_, offset_, scratch, n, &read));
    offset_ += read;
    *result = Slice(scratch, read);
    return status;
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += n;
    return IOStatus::OK();
  }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }

 private:
  LightReader* reader_;
  uint64_t offset_ = 0;
};

class LightRandomAccessFile final : public FSRandomAccessFile {
 public:
  explicit LightRandomAccessFile(LightReader* reader) : reader_(reader) {}
  ~LightRandomAccessFile() override { lightlsm_free_reader(reader_); }

  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    if (scratch == nullptr) return IOStatus::InvalidArgument("a file that is not mapped is read into memory of the caller's");
    size_t read = 0;
    IOStatus status = StatusOf(lightlsm_read(reader_, offset, scratch, n, &read));
    *result = Slice(scratch, read);
    return status;
  }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }

 private:
  LightReader* reader_;
};

// A file that is read by maps: whole in memory from its opening on, so that slices are good as long as it is.
class LightMappedFile final : public FSRandomAccessFile {
 public:
  LightMappedFile(LightMap* map, Slice content) : map_(map), content_(content) {}
  ~LightMappedFile() override { lightlsm_unmap(map_); }

  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char*, IODebugContext*) const override {
    size_t begin = offset < content_.size() ? static_cast<size_t>(offset) : content_.size();
    size_t left = content_.size() - begin;
    *result = Slice(content_.data() + begin, n < left ? n : left);
    return IOStatus::OK();
  }
  // The memory is the content, not a copy of it.
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }

 private:
  LightMap* map_;
  const Slice content_;
};

class LightDirectory final : public FSDirectory {
 public:
  explicit LightDirectory(const LightFs* fs) : fs_(fs) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return StatusOf(lightlsm_sync_names(fs_)); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  const LightFs* fs_;
};

class LightLock final : public FileLock {
 public:
  explicit LightLock(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

class LightFileSystem final : public FileSystem {
 public:
  LightFileSystem(LightFs* fs, std::string uri) : fs_(fs), uri_(std::move(uri)) {}
  ~LightFileSystem() override { lightlsm_close(fs_); }

  static const char* kClassName() { return "lightlsm"; }
  const char* Name() const override { return kClassName(); }
  std::string GetId() const override { return uri_; }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions&, std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext*) override {
    LightReader* reader = nullptr;
    int code = lightlsm_open_file(fs_, path.data(), path.size(), &reader);
    if (code == kDone) result->reset(new LightSequentialFile(reader));
    return StatusOf(code);
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result, IODebugContext*) override {
    if (options.use_mmap_reads) return Map(path, result);
    LightReader* reader = nullptr;
    int code = lightlsm_open_file(fs_, path.data(), path.size(), &reader);
    if (code == kDone) result->reset(new LightRandomAccessFile(reader));
    return StatusOf(code);
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext*) override {
    return Create(path, options, 0, result);
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result, IODebugContext*) override {
    return Create(path, options, 1, result);
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions&, std::unique_ptr<FSDirectory>* result,
                        IODebugContext*) override {
    IOStatus status = CheckDirectory(path);
    if (status.ok()) result->reset(new LightDirectory(fs_));
    return status;
  }
  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override {
    int code = Look(path, nullptr, nullptr, nullptr);
    return code == kNotFound ? IOStatus::NotFound() : StatusOf(code);
  }
  IOStatus GetChildren(const std::string& path, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    result->clear();
    auto add = [](void* names, const char* name, size_t bytes) {
      static_cast<std::vector<std::string>*>(names)->emplace_back(name, bytes);
    };
    int code = lightlsm_children(fs_, path.data(), path.size(), add, result);
    // As the POSIX file system has it: PathNotFound would be an I/O error.
    return code == kNotFound ? IOStatus::NotFound(lightlsm_error()) : StatusOf(code);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) override {
    return StatusOf(lightlsm_delete(fs_, path.data(), path.size()));
  }
  IOStatus Truncate(const std::string& path, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    std::unique_ptr<FSWritableFile> file;
    IOStatus status = CheckFile(path);
    if (status.ok()) status = Create(path, FileOptions(), 1, &file);
    if (status.ok()) status = file->Truncate(size, options, dbg);
    return status.ok() ? file->Close(options, dbg) : status;
  }
  IOStatus CreateDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return StatusOf(lightlsm_create_dir(fs_, path.data(), path.size(), 1));
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions&, IODebugContext*) override {
    return StatusOf(lightlsm_create_dir(fs_, path.data(), path.size(), 0));
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return StatusOf(lightlsm_delete_dir(fs_, path.data(), path.size()));
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions&, uint64_t* size, IODebugContext*) override {
    return StatusOf(Look(path, size, nullptr, nullptr));
  }
  IOStatus GetFileModificationTime(const std::string& path, const IOOptions&, uint64_t* seconds,
                                   IODebugContext*) override {
    uint64_t ns = 0;
    int code = Look(path, nullptr, &ns, nullptr);
    *seconds = ns / 1000000000;
    return StatusOf(code);
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) override {
    return StatusOf(lightlsm_rename(fs_, from.data(), from.size(), to.data(), to.size()));
  }
  IOStatus LinkFile(const std::string&, const std::string&, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("lightlsm:// has no links: a table is one file's; RocksDB copies instead");
  }
  IOStatus NumFileLinks(const std::string&, const IOOptions&, uint64_t*, IODebugContext*) override {
    return IOStatus::NotSupported("lightlsm:// has no links");
  }
  IOStatus AreFilesSame(const std::string&, const std::string&, const IOOptions&, bool*, IODebugContext*) override {
    return IOStatus::NotSupported("lightlsm:// has no links");
  }
  IOStatus LockFile(const std::string& path, const IOOptions&, FileLock** lock, IODebugContext*) override {
    *lock = nullptr;
    int code = lightlsm_lock(fs_, path.data(), path.size(), 1);
    if (code != kDone) return StatusOf(code);
    // The file itself, as other file systems have it.
    std::unique_ptr<FSWritableFile> file;
    IOStatus status = Create(path, FileOptions(), 1, &file);
    if (!status.ok()) {
      lightlsm_lock(fs_, path.data(), path.size(), 0);
      return status;
    }
    *lock = new LightLock(path);
    return IOStatus::OK();
  }
  IOStatus UnlockFile(FileLock* lock, const IOOptions&, IODebugContext*) override {
    std::unique_ptr<LightLock> taken(static_cast<LightLock*>(lock));
    return StatusOf(lightlsm_lock(fs_, taken->path_.data(), taken->path_.size(), 0));
  }
  IOStatus GetTestDirectory(const IOOptions& options, std::string* path, IODebugContext* dbg) override {
    const char* named = std::getenv("TEST_TMPDIR");
    *path = named != nullptr && *named != 0 ? named : "/rocksdbtest";
    return CreateDirIfMissing(*path, options, dbg);
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute,
                           IODebugContext*) override {
    *absolute = !path.empty() && path[0] == '/' ? path : "/" + path;
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, uint64_t* free, IODebugContext*) override {
    uint64_t capacity = 0, used = 0;
    int code = lightlsm_space(fs_, &capacity, &used);
    *free = capacity > used ? capacity - used : 0;
    return StatusOf(code);
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* is_directory, IODebugContext*) override {
    int directory = 0;
    int code = Look(path, nullptr, nullptr, &directory);
    if (is_directory != nullptr) *is_directory = directory != 0;
    return StatusOf(code);
  }

 private:
  int Look(const std::string& path, uint64_t* size, uint64_t* modified_ns, int* is_directory) const {
    uint64_t size_found = 0, modified_found = 0;
    int directory_found = 0;
    int code = lightlsm_status(fs_, path.data(), path.size(), &size_found, &modified_found, &directory_found);
    if (size != nullptr) *size = size_found;
    if (modified_ns != nullptr) *modified_ns = modified_found;
    if (is_directory != nullptr) *is_directory = directory_found;
    return code;
  }
  IOStatus CheckDirectory(const std::string& path) const {
    int is_directory = 0;
    int code = Look(path, nullptr, nullptr, &is_directory);
    if (code == kDone && is_directory == 0) return IOStatus::IOError(path, "is a file, and no directory");
    return StatusOf(code);
  }
  IOStatus CheckFile(const std::string& path) const {
    int is_directory = 0;
    int code = Look(path, nullptr, nullptr, &is_directory);
    if (code == kDone && is_directory != 0) return IOStatus::IOError(path, "is a directory, and no file");
    return StatusOf(code);
  }
  IOStatus Map(const std::string& path, std::unique_ptr<FSRandomAccessFile>* result) const {
    LightMap* map = nullptr;
    const char* content = nullptr;
    size_t length = 0;
    int code = lightlsm_map(fs_, path.data(), path.size(), &map, &content, &length);
    if (code == kDone) result->reset(new LightMappedFile(map, Slice(content, length)));
    return StatusOf(code);
  }
  IOStatus Create(const std::string& path, const FileOptions& options, int is_continued,
                  std::unique_ptr<FSWritableFile>* result) const {
    LightWriter* writer = nullptr;
    int code = lightlsm_create(fs_, path.data(), path.size(), is_continued, &writer);
    if (code == kDone) result->reset(new LightWritableFile(writer, options));
    return StatusOf(code);
  }

  LightFs* fs_;
  const std::string uri_;
};

FileSystem* NewLightFileSystem(const std::string& uri, std::unique_ptr<FileSystem>* guard, std::string* error) {
  LightFs* fs = nullptr;
  if (lightlsm_open(uri.data(), uri.size(), &fs) != kDone) {
    // RocksDB 7.8 goes on without a file system and without a word, so the sentence is said here too.
    *error = lightlsm_error();
    fprintf(stderr, "%s: %s\n", uri.c_str(), error->c_str());
    return nullptr;
  }
  guard->reset(new LightFileSystem(fs, uri));
  return guard->get();
}

ObjectLibrary::PatternEntry Scheme() { return ObjectLibrary::PatternEntry("lightlsm", false).AddSeparator("://", false); }

FactoryFunc<FileSystem> file_systems = ObjectLibrary::Default()->AddFactory<FileSystem>(
    Scheme(), [](const std::string& uri, std::unique_ptr<FileSystem>* guard, std::string* error) {
      return NewLightFileSystem(uri, guard, error);
    });

// RocksDB's own tests name a file system where an Env is meant.
FactoryFunc<Env> envs = ObjectLibrary::Default()->AddFactory<Env>(
    Scheme(), [](const std::string& uri, std::unique_ptr<Env>* guard, std::string* error) -> Env* {
      std::unique_ptr<FileSystem> made;
      if (NewLightFileSystem(uri, &made, error) == nullptr) return nullptr;
      *guard = NewCompositeEnv(std::shared_ptr<FileSystem>(std::move(made)));
      return guard->get();
    });

}  // namespace
