package ocssd.ycsb;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A connection in Redis' protocol, version 2: words go out, answers come back in order.
 *
 * <p>An answer is a {@code String} (a status), a {@code Long}, a {@code byte[]}, a {@code List} of answers, or null for what does
 * not exist. An error of the server is an {@link IOException} with its words. Deliberately not here: what commands mean.
 */
final class Connection implements Closeable {
  private final Socket socket;
  private final DataInputStream in;
  private final OutputStream out;

  Connection(String host, int port) throws IOException {
    socket = new Socket(host, port);
    socket.setTcpNoDelay(true);
    in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 16));
    out = new BufferedOutputStream(socket.getOutputStream(), 1 << 16);
  }

  static byte[] word(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Writes a command; {@link #answers} sends it. */
  void ask(byte[]... words) throws IOException {
    out.write(word("*" + words.length + "\r\n"));
    for (byte[] word : words) {
      out.write(word("$" + word.length + "\r\n"));
      out.write(word);
      out.write(word("\r\n"));
    }
  }

  /** Sends what was asked, and waits for this many answers. */
  List<Object> answers(int count) throws IOException {
    out.flush();
    List<Object> answers = new ArrayList<>();
    String refused = null;
    for (int answer = 0; answer < count; answer++) {
      try {
        answers.add(answer());
      } catch (Refused refusal) {
        // The answers behind it are read all the same, or the next command would get them.
        refused = refused == null ? refusal.getMessage() : refused;
      }
    }
    if (refused != null) {
      throw new Refused(refused);
    }
    return answers;
  }

  Object answer(byte[]... words) throws IOException {
    ask(words);
    return answers(1).get(0);
  }

  /** The server refused a command. */
  static final class Refused extends IOException {
    private static final long serialVersionUID = 1;

    Refused(String words) {
      super(words);
    }
  }

  private Object answer() throws IOException {
    String head = line();
    String rest = head.substring(1);
    switch (head.charAt(0)) {
      case '+':
        return rest;
      case '-':
        throw new Refused(rest);
      case ':':
        return Long.valueOf(rest);
      case '$':
        return content(Integer.parseInt(rest));
      case '*':
        return list(Integer.parseInt(rest));
      default:
        throw new IOException("no answer begins with: " + head);
    }
  }

  private byte[] content(int length) throws IOException {
    if (length < 0) {
      return null;
    }
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    line();
    return bytes;
  }

  private List<Object> list(int length) throws IOException {
    if (length < 0) {
      return null;
    }
    List<Object> list = new ArrayList<>();
    for (int entry = 0; entry < length; entry++) {
      list.add(answer());
    }
    return list;
  }

  private String line() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int next = in.read(); next != '\r'; next = in.read()) {
      if (next < 0) {
        throw new EOFException("the server closed the connection");
      }
      line.append((char) next);
    }
    in.readByte();
    return line.toString();
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
