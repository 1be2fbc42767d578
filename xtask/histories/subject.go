package main

// A connection of a client, with one request at a time. Places are blocks or keys; each holds the number of the transaction that
// was the last to write it, from its first byte to its last, or 0 if none was.
type connection interface {
	// The numbers of neighbouring places.
	read(first, count int) ([]uint64, error)
	// Gives neighbouring places a number, all or none.
	write(first, count int, number uint64) error
	close()
}

// A connection to keys, which can be absent.
type keyed interface {
	connection
	// Gives a key a number if it is absent; whether it was.
	add(at int, number uint64) (bool, error)
	// Removes a key; whether it was there.
	remove(at int) (bool, error)
	// The numbers of neighbouring keys, which get another, all as one transaction.
	exchange(first, count int, number uint64) ([]uint64, error)
}

// What is served, and how clients come to it.
type subject struct {
	name string
	// Arguments of the server, beside its drive; it runs in the folder of its socket "s".
	arguments []string
	dial      func(socket string) (connection, error)
	// What its transactions are called.
	transactions string
}

// A reply that says that a request failed. Any other error is of the connection.
type refused interface{ refuses() }

var subjects = []subject{
	{
		name:         "ox-block",
		arguments:    []string{"--target", "ox-block", "--nbd", "unix:s"},
		dial:         dialNbd,
		transactions: "writes of blocks",
	},
	{
		name:         "kv",
		arguments:    []string{"--target", "kv", "--resp", "unix:s"},
		dial:         dialResp,
		transactions: "MSET, SET NX, DEL and MULTI with MGET and MSET",
	},
}
