package main

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// Blocks that the clients share (chosen: few, so that transactions meet).
const blocks = 12

// What all blocks hold: the number of a transaction each, 0 before the first.
type content [blocks]uint64

// What a client asked and was told, or was not.
type operation struct {
	client       int
	isWrite      bool
	first, count int
	// The number of the transaction.
	number uint64
	// What was read.
	found content
	// A write may not be: it is cut by a kill, and is whole or absent.
	isAnswered bool
	// Nanoseconds of the client's clock. What a kill cut returns when the server that recovered answers its first request, and not
	// later: nothing of it may show up after that.
	call, ret int64
}

func (operation operation) String() string {
	verb := "reads"
	if operation.isWrite {
		verb = fmt.Sprintf("writes %d to", operation.number)
	}
	return fmt.Sprintf("client %d %s blocks %d to %d", operation.client, verb, operation.first,
		operation.first+operation.count-1)
}

// An order is explained if each operation, done at once and one after the other, gives what was told.
var model = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{content{}} },
	Step: func(state, input, _ interface{}) []interface{} {
		before, operation := state.(content), input.(operation)
		after := before
		for block := operation.first; block < operation.first+operation.count; block++ {
			if operation.isWrite {
				after[block] = operation.number
			} else if before[block] != operation.found[block] {
				return nil
			}
		}
		if operation.isWrite && !operation.isAnswered {
			return []interface{}{before, after}
		}
		return []interface{}{after}
	},
}

// How long porcupine may search (chosen: it takes milliseconds).
const judgeLimit = 60 * time.Second

func judge(history []operation) porcupine.CheckResult {
	var operations []porcupine.Operation
	for _, of := range history {
		operations = append(operations, porcupine.Operation{ClientId: of.client, Input: of, Call: of.call, Return: of.ret})
	}
	model := model.ToModel()
	return porcupine.CheckOperationsTimeout(model, operations, judgeLimit)
}

func isLegal(history []operation) bool {
	return judge(history) == porcupine.Ok
}

func expectLegal(history []operation) error {
	switch judge(history) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("porcupine could not judge %d operations within %s", len(history), judgeLimit)
	}
	// Where it goes wrong: the shortest beginning, in the order of answers, that is illegal.
	for end := 1; end <= len(history); end++ {
		if !isLegal(history[:end]) {
			last := history[end-1]
			return fmt.Errorf("no order of transactions explains this history of %d operations; it is illegal from operation %d "+
				"on, in which %s and finds %v", len(history), end, last, last.found)
		}
	}
	return fmt.Errorf("no order of transactions explains this history of %d operations", len(history))
}

// The judge is judged first: histories of which everybody can say whether they are legal.
func judgeKnownHistories() error {
	write := func(number uint64, isAnswered bool, call, ret int64) operation {
		return operation{isWrite: true, first: 0, count: 2, number: number, isAnswered: isAnswered, call: call, ret: ret}
	}
	read := func(first, second uint64, call, ret int64) operation {
		return operation{first: 0, count: 2, found: content{first, second}, isAnswered: true, call: call, ret: ret}
	}
	for name, of := range map[string]struct {
		history []operation
		isLegal bool
	}{
		"a transaction is read as a whole":        {[]operation{write(1, true, 1, 2), read(1, 1, 3, 4)}, true},
		"half of it is read":                      {[]operation{write(1, true, 1, 2), read(1, 0, 3, 4)}, false},
		"it was answered and is gone":             {[]operation{write(1, true, 1, 2), read(0, 0, 3, 4)}, false},
		"one that was cut is absent":              {[]operation{write(1, false, 1, 2), read(0, 0, 3, 4)}, true},
		"one that was cut is whole":               {[]operation{write(1, false, 1, 2), read(1, 1, 3, 4)}, true},
		"one that was cut is torn":                {[]operation{write(1, false, 1, 2), read(1, 0, 3, 4)}, false},
		"one that was cut shows up later":         {[]operation{write(1, false, 1, 2), read(0, 0, 3, 4), read(1, 1, 5, 6)}, false},
		"of two at a time one is torn by another": {[]operation{write(1, true, 1, 5), write(2, true, 2, 4), read(1, 2, 6, 7)}, false},
	} {
		if isLegal(of.history) != of.isLegal {
			return fmt.Errorf("porcupine is wrong where %s: it should say %v", name, of.isLegal)
		}
	}
	return nil
}
