package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// Redis' protocol, version 2, as redis.io/docs/latest/develop/reference/protocol-spec has it.
type resp struct {
	stream net.Conn
	reader *bufio.Reader
}

func dialResp(socket string) (connection, error) {
	stream, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	client := &resp{stream: stream, reader: bufio.NewReader(stream)}
	if _, err := client.ask([]byte("PING")); err != nil {
		stream.Close()
		return nil, err
	}
	return client, nil
}

// An error that the server replied.
type respError string

func (said respError) Error() string { return fmt.Sprintf("a request failed: %s", string(said)) }
func (said respError) refuses()      {}

// The reply to a request: bytes, nil, a number, or a list of those.
func (client *resp) ask(words ...[]byte) (interface{}, error) {
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		text = fmt.Appendf(text, "$%d\r\n", len(word))
		text = append(append(text, word...), "\r\n"...)
	}
	if _, err := client.stream.Write(text); err != nil {
		return nil, err
	}
	return client.reply()
}

func (client *resp) reply() (interface{}, error) {
	line, err := client.reader.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	kind, said := line[0], string(bytes.TrimSpace(line[1:]))
	if kind == '+' {
		return []byte(said), nil
	}
	if kind == '-' {
		return nil, respError(said)
	}
	count, err := strconv.Atoi(said)
	switch {
	case err != nil || (kind != ':' && kind != '$' && kind != '*'):
		return nil, fmt.Errorf("a reply was expected, but it said %q", line)
	case kind == ':':
		return count, nil
	case count < 0:
		return nil, nil
	case kind == '$':
		value := make([]byte, count+2)
		_, err := io.ReadFull(client.reader, value)
		return value[:count], err
	}
	list := make([]interface{}, count)
	for place := range list {
		if list[place], err = client.reply(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func name(at int) []byte { return fmt.Appendf(nil, "key:%d", at) }

// The value of a number: from 8 bytes to more than a record takes, so that some lie in pieces.
func value(number uint64) []byte {
	words := 1 + int(number*number%7*number%4000)
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, number), words)
}

// MGET of neighbouring keys.
func get(first, count int) [][]byte {
	words := [][]byte{[]byte("MGET")}
	for at := first; at < first+count; at++ {
		words = append(words, name(at))
	}
	return words
}

// MSET of neighbouring keys to the value of a number.
func set(first, count int, number uint64) [][]byte {
	words := [][]byte{[]byte("MSET")}
	for at := first; at < first+count; at++ {
		words = append(words, name(at), value(number))
	}
	return words
}

// The numbers that MGET's reply has, of keys from the first on.
func numbersOf(reply interface{}, first, count int) ([]uint64, error) {
	values, isList := reply.([]interface{})
	if !isList || len(values) != count {
		return nil, fmt.Errorf("%d values were expected, but it said %v", count, reply)
	}
	numbers := make([]uint64, count)
	for place, found := range values {
		held, isThere := found.([]byte)
		if !isThere {
			continue
		}
		if len(held) >= 8 {
			numbers[place] = binary.LittleEndian.Uint64(held)
		}
		if !bytes.Equal(held, value(numbers[place])) {
			return nil, fmt.Errorf("key %d: %w", first+place, errTorn)
		}
	}
	return numbers, nil
}

func (client *resp) read(first, count int) ([]uint64, error) {
	reply, err := client.ask(get(first, count)...)
	if err != nil {
		return nil, err
	}
	return numbersOf(reply, first, count)
}

func (client *resp) write(first, count int, number uint64) error {
	_, err := client.ask(set(first, count, number)...)
	return err
}

func (client *resp) exchange(first, count int, number uint64) ([]uint64, error) {
	for _, words := range [][][]byte{{[]byte("MULTI")}, get(first, count), set(first, count, number)} {
		if _, err := client.ask(words...); err != nil {
			return nil, err
		}
	}
	reply, err := client.ask([]byte("EXEC"))
	if err != nil {
		return nil, err
	}
	replies, isList := reply.([]interface{})
	if !isList || len(replies) != 2 {
		return nil, fmt.Errorf("EXEC of two commands said %v", reply)
	}
	return numbersOf(replies[0], first, count)
}

func (client *resp) add(at int, number uint64) (bool, error) {
	reply, err := client.ask([]byte("SET"), name(at), value(number), []byte("NX"))
	return reply != nil, err
}

func (client *resp) remove(at int) (bool, error) {
	reply, err := client.ask([]byte("DEL"), name(at))
	if count, isCount := reply.(int); err == nil && (!isCount || count > 1) {
		return false, errors.New("DEL should be answered by 0 or 1")
	}
	return reply == 1, err
}

func (client *resp) close() { client.stream.Close() }
