package ocssd.ycsb;

import static ocssd.ycsb.Connection.word;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.ConcurrentSkipListSet;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * YCSB's records on a served key-value target: each one value, under its table, a slash, and its key.
 *
 * <p>An update of some fields reads the record and stores it whole, in a transaction that is tried again if the record changed
 * meanwhile. Strings have no order that a client could ask for, so for scans the keys are listed once and kept in order in this
 * program's memory, as YCSB's binding for Redis keeps them in a sorted set.
 *
 * <p>Properties: {@code resp.host} (127.0.0.1) and {@code resp.port} (6379). Deliberately not here: Redis' protocol
 * ({@link Connection}), and what a value looks like ({@link Record}).
 */
public final class RespClient extends DB {
  /** How often an update is tried (chosen: each try that fails means that another one succeeded). */
  private static final int TRIES = 10_000;

  /** Keys of the server, in order: all threads' own and those that were there before. */
  private static ConcurrentSkipListSet<String> keys;

  private Connection connection;

  @Override
  public void init() throws DBException {
    String host = getProperties().getProperty("resp.host", "127.0.0.1");
    int port = Integer.parseInt(getProperties().getProperty("resp.port", "6379"));
    try {
      connection = new Connection(host, port);
      if (scans()) {
        list(connection);
      }
    } catch (IOException error) {
      throw new DBException("a server of Redis' protocol at " + host + ":" + port, error);
    }
  }

  private boolean scans() {
    return Double.parseDouble(getProperties().getProperty("scanproportion", "0")) > 0;
  }

  private static synchronized void list(Connection connection) throws IOException {
    if (keys != null) {
      return;
    }
    ConcurrentSkipListSet<String> found = new ConcurrentSkipListSet<>();
    byte[] cursor = word("0");
    do {
      List<?> page = (List<?>) connection.answer(word("SCAN"), cursor, word("COUNT"), word("1000"));
      cursor = (byte[]) page.get(0);
      for (Object key : (List<?>) page.get(1)) {
        found.add(new String((byte[]) key, StandardCharsets.UTF_8));
      }
    } while (cursor.length != 1 || cursor[0] != '0');
    keys = found;
  }

  @Override
  public void cleanup() throws DBException {
    try {
      connection.close();
    } catch (IOException error) {
      throw new DBException(error);
    }
  }

  private static String name(String table, String key) {
    return table + "/" + key;
  }

  /** What one request does. */
  private interface Work {
    Status done() throws IOException;
  }

  private static Status status(Work work) {
    try {
      return work.done();
    } catch (IOException error) {
      System.out.println("refused or lost: " + error.getMessage());
      return Status.ERROR;
    }
  }

  @Override
  public Status read(
      String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return status(
        () -> {
          byte[] value = (byte[]) connection.answer(word("GET"), word(name(table, key)));
          if (value == null) {
            return Status.NOT_FOUND;
          }
          Record.decode(value).give(fields, result);
          return Status.OK;
        });
  }

  @Override
  public Status scan(
      String table,
      String first,
      int count,
      Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return status(
        () -> {
          List<byte[]> words = new ArrayList<>(List.of(word("MGET")));
          String prefix = name(table, "");
          for (String key : keys.tailSet(name(table, first))) {
            if (words.size() > count || !key.startsWith(prefix)) {
              break;
            }
            words.add(word(key));
          }
          if (words.size() == 1) {
            return Status.NOT_FOUND;
          }
          for (Object value : (List<?>) connection.answer(words.toArray(new byte[0][]))) {
            if (value == null) {
              return Status.UNEXPECTED_STATE;
            }
            HashMap<String, ByteIterator> record = new HashMap<>();
            Record.decode((byte[]) value).give(fields, record);
            result.add(record);
          }
          return Status.OK;
        });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return status(
        () -> {
          byte[] value = Record.of(values).encode();
          connection.answer(word("SET"), word(name(table, key)), value);
          if (scans()) {
            keys.add(name(table, key));
          }
          return Status.OK;
        });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    byte[] name = word(name(table, key));
    // YCSB's contents are made as they are read, so they are read once.
    Map<String, ByteIterator> contents = new HashMap<>();
    Record.of(values).give(null, contents);
    return status(
        () -> {
          for (int tried = 0; tried < TRIES; tried++) {
            connection.ask(word("WATCH"), name);
            connection.ask(word("GET"), name);
            byte[] value = (byte[]) connection.answers(2).get(1);
            if (value == null) {
              connection.answer(word("UNWATCH"));
              return Status.NOT_FOUND;
            }
            Record record = Record.decode(value);
            contents.values().forEach(ByteIterator::reset);
            record.put(contents);
            connection.ask(word("MULTI"));
            connection.ask(word("SET"), name, record.encode());
            connection.ask(word("EXEC"));
            if (connection.answers(3).get(2) != null) {
              return Status.OK;
            }
          }
          return Status.SERVICE_UNAVAILABLE;
        });
  }

  @Override
  public Status delete(String table, String key) {
    return status(
        () -> {
          Object deleted = connection.answer(word("DEL"), word(name(table, key)));
          if (keys != null) {
            keys.remove(name(table, key));
          }
          return Long.valueOf(1).equals(deleted) ? Status.OK : Status.NOT_FOUND;
        });
  }
}
