package ocssd.ycsb;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;

/**
 * A record's fields as one value: for each its name and its content, before each its length in 32 bits.
 *
 * <p>Deliberately not here: where the value lies.
 */
final class Record {
  private final Map<String, byte[]> fields = new TreeMap<>();

  /** The fields of YCSB's. */
  static Record of(Map<String, ByteIterator> values) {
    Record record = new Record();
    record.put(values);
    return record;
  }

  /** The record that a value holds. */
  static Record decode(byte[] value) {
    Record record = new Record();
    ByteBuffer left = ByteBuffer.wrap(value);
    while (left.hasRemaining()) {
      String name = new String(next(left), StandardCharsets.UTF_8);
      record.fields.put(name, next(left));
    }
    return record;
  }

  private static byte[] next(ByteBuffer left) {
    byte[] bytes = new byte[left.getInt()];
    left.get(bytes);
    return bytes;
  }

  /** These fields are others from now on. */
  void put(Map<String, ByteIterator> values) {
    values.forEach((name, content) -> fields.put(name, content.toArray()));
  }

  byte[] encode() {
    Map<byte[], byte[]> all = new java.util.LinkedHashMap<>();
    int length = 0;
    for (Map.Entry<String, byte[]> field : fields.entrySet()) {
      byte[] name = field.getKey().getBytes(StandardCharsets.UTF_8);
      all.put(name, field.getValue());
      length += 8 + name.length + field.getValue().length;
    }
    ByteBuffer value = ByteBuffer.allocate(length);
    all.forEach(
        (name, content) ->
            value.putInt(name.length).put(name).putInt(content.length).put(content));
    return value.array();
  }

  /** Gives YCSB the fields it asks for; all, if it names none. */
  void give(Set<String> wanted, Map<String, ByteIterator> into) {
    fields.forEach(
        (name, content) -> {
          if (wanted == null || wanted.contains(name)) {
            into.put(name, new ByteArrayByteIterator(content));
          }
        });
  }
}
