package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// The protocol, as in NBD's doc/proto.md.
const (
	optionMagic, replyMagic    = 0x49484156454F5054, 0x3E889045565A9
	requestMagic, answerMagic  = 0x25609513, 0x67446698
	optionGo, replyAck         = 7, 1
	replyErrors                = 1 << 31
	commandRead, commandWrite  = 0, 1
	fixedNewstyle, withoutPads = 1, 2
)

// A connection, with one request at a time.
type nbd struct {
	stream net.Conn
	cookie uint64
}

func dialNbd(socket string) (connection, error) {
	stream, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	client := &nbd{stream: stream}
	if err := client.greet(); err != nil {
		stream.Close()
		return nil, err
	}
	return client, nil
}

// Chooses the only export.
func (client *nbd) greet() error {
	hello := make([]byte, 18)
	if _, err := io.ReadFull(client.stream, hello); err != nil {
		return err
	}
	if string(hello[:8]) != "NBDMAGIC" {
		return fmt.Errorf("a server of NBD was expected, but it said %q", hello[:8])
	}
	words := binary.BigEndian.AppendUint32(nil, fixedNewstyle|withoutPads)
	words = binary.BigEndian.AppendUint64(words, optionMagic)
	words = binary.BigEndian.AppendUint32(words, optionGo)
	// No name and no questions.
	words = append(binary.BigEndian.AppendUint32(words, 6), 0, 0, 0, 0, 0, 0)
	if _, err := client.stream.Write(words); err != nil {
		return err
	}
	for {
		reply := make([]byte, 20)
		if _, err := io.ReadFull(client.stream, reply); err != nil {
			return err
		}
		kind, length := binary.BigEndian.Uint32(reply[12:]), binary.BigEndian.Uint32(reply[16:])
		if binary.BigEndian.Uint64(reply) != replyMagic || length > 1<<16 {
			return fmt.Errorf("an answer to an option was expected, but it said %x", reply)
		}
		said := make([]byte, length)
		if _, err := io.ReadFull(client.stream, said); err != nil {
			return err
		}
		if kind == replyAck {
			return nil
		}
		if kind&replyErrors != 0 {
			return fmt.Errorf("the server refused its export: %s", said)
		}
	}
}

// An answer that says that a request failed.
type failed uint32

func (errno failed) Error() string {
	return fmt.Sprintf("a request failed with errno %d", uint32(errno))
}

func (errno failed) refuses() {}

// Asks for a read into, or a write of, data. An error that is not of type failed is of the connection.
func (client *nbd) ask(command uint16, offset uint64, data []byte) error {
	client.cookie++
	words := binary.BigEndian.AppendUint32(nil, requestMagic)
	words = binary.BigEndian.AppendUint16(words, 0)
	words = binary.BigEndian.AppendUint16(words, command)
	words = binary.BigEndian.AppendUint64(words, client.cookie)
	words = binary.BigEndian.AppendUint64(words, offset)
	words = binary.BigEndian.AppendUint32(words, uint32(len(data)))
	if command == commandWrite {
		words = append(words, data...)
	}
	if _, err := client.stream.Write(words); err != nil {
		return err
	}
	answer := make([]byte, 16)
	if _, err := io.ReadFull(client.stream, answer); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(answer) != answerMagic || binary.BigEndian.Uint64(answer[8:]) != client.cookie {
		return fmt.Errorf("an answer to request %d was expected, but it said %x", client.cookie, answer)
	}
	if errno := binary.BigEndian.Uint32(answer[4:]); errno != 0 {
		return failed(errno)
	}
	if command == commandRead {
		_, err := io.ReadFull(client.stream, data)
		return err
	}
	return nil
}

const blockBytes = 4096

func (client *nbd) read(first, count int) ([]uint64, error) {
	data := make([]byte, count*blockBytes)
	if err := client.ask(commandRead, uint64(first*blockBytes), data); err != nil {
		return nil, err
	}
	numbers := make([]uint64, count)
	for block := range numbers {
		held := data[block*blockBytes : (block+1)*blockBytes]
		if !bytes.Equal(held, bytes.Repeat(held[:8], blockBytes/8)) {
			return nil, fmt.Errorf("block %d: %w", first+block, errTorn)
		}
		numbers[block] = binary.LittleEndian.Uint64(held)
	}
	return numbers, nil
}

func (client *nbd) write(first, count int, number uint64) error {
	data := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, number), count*blockBytes/8)
	return client.ask(commandWrite, uint64(first*blockBytes), data)
}

func (client *nbd) close() { client.stream.Close() }
