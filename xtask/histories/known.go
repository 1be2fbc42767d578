package main

import "fmt"

// The judge is judged first: histories of which everybody can say whether they are legal.
func judgeKnownHistories() error {
	write := func(number uint64, isAnswered bool, call, ret int64) operation {
		return operation{verb: writes, first: 0, count: 2, number: number, isAnswered: isAnswered, call: call, ret: ret}
	}
	read := func(first, second uint64, call, ret int64) operation {
		return operation{first: 0, count: 2, found: content{first, second}, isAnswered: true, call: call, ret: ret}
	}
	change := func(verb verb, number uint64, isDone, isAnswered bool, call, ret int64) operation {
		return operation{verb: verb, count: 1, number: number, isDone: isDone, isAnswered: isAnswered, call: call, ret: ret}
	}
	exchange := func(first, second, number uint64, call, ret int64) operation {
		of := read(first, second, call, ret)
		of.verb, of.number = exchanges, number
		return of
	}
	first, add := write(1, true, 1, 2), change(adds, 2, false, true, 3, 4)
	adding, beside := change(adds, 1, true, true, 1, 5), change(adds, 2, true, true, 2, 4)
	remove, cut := change(removes, 0, true, true, 3, 4), change(removes, 0, false, false, 3, 4)
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
		"what is absent is added":                 {[]operation{change(adds, 1, true, true, 1, 2), read(1, 0, 3, 4)}, true},
		"what is there is added":                  {[]operation{first, change(adds, 2, true, true, 3, 4)}, false},
		"what is there is not added":              {[]operation{first, add}, true},
		"what is not added is there":              {[]operation{first, add, read(2, 1, 5, 6)}, false},
		"what is removed is gone":                 {[]operation{first, remove, read(0, 1, 5, 6)}, true},
		"what is removed comes back":              {[]operation{first, remove, read(1, 1, 5, 6)}, false},
		"what is absent is removed":               {[]operation{change(removes, 0, true, true, 1, 2)}, false},
		"a removal was cut, and the key is there": {[]operation{first, cut, read(1, 1, 5, 6)}, true},
		"a removal was cut, and the key is gone":  {[]operation{first, cut, read(0, 1, 5, 6)}, true},
		"of two one alone adds":                   {[]operation{adding, beside}, false},
		"an exchange finds what was there":        {[]operation{first, exchange(1, 1, 2, 3, 4), read(2, 2, 5, 6)}, true},
		"an exchange finds half of it":            {[]operation{first, exchange(1, 0, 2, 3, 4)}, false},
		"two exchanges find the same":             {[]operation{first, exchange(1, 1, 2, 3, 6), exchange(1, 1, 3, 4, 5)}, false},
	} {
		if isLegal(of.history) != of.isLegal {
			return fmt.Errorf("porcupine is wrong where %s: it should say %v", name, of.isLegal)
		}
	}
	return nil
}
