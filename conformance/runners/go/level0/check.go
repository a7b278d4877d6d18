package level0

// Whether an answer is as a case expects it.

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Constraint is what a case says of one field of an answer.
type Constraint struct {
	Path     string
	Versions []int
	OneOf    []any `json:"one_of"`
	NotEmpty bool  `json:"not_empty"`
	NoneOf   []any `json:"none_of"`
	AtLeast  any   `json:"at_least"`
	Records  *struct {
		Offsets      []int64
		LeaderEpochs []any `json:"leader_epochs"`
		Values       []any // of the records at the offsets, if they are looked at
		Times        []any
		Keys         []any // null, in each of the three, is for anything
	}
	Free *Free
}

// Free is what the protocol leaves free: a value other than Apache Kafka's, or another ending of the request.
type Free struct {
	OneOf  []int64  `json:"one_of"`
	NoneOf *[]int64 `json:"none_of"`
	Ending string
	Why    string
}

// allows tells whether a value is one of those that are free.
func (free *Free) allows(found any) bool {
	number, is := found.(int64)
	if free == nil || !is {
		return false
	}
	if free.NoneOf != nil {
		return !slices.Contains(*free.NoneOf, number)
	}
	return slices.Contains(free.OneOf, number)
}

// liberties tells what of an answer that is as expected is unlike Apache Kafka's, and why that is free.
func liberties(expected []Constraint, version int, answer any, known Known) (told []string) {
	for _, one := range expected {
		if one.Free == nil || !has(one.Versions, version) {
			continue
		}
		found, _ := at(answer, one.Path, known)
		if one.notOneOf(found, known) != "" && one.Free.allows(found) {
			told = append(told, fmt.Sprintf("%s: %v, where Apache Kafka has %v: %s", one.Path, found, one.OneOf, one.Free.Why))
		}
	}
	return told
}

func has(versions []int, version int) bool {
	return len(versions) == 0 || versions[0] <= version && version <= versions[1]
}

var steps = regexp.MustCompile(`\[([^\]]*)\]|([a-z_0-9]+)`)

// untold stands for a field that is missing in a message, as only a tagged one may be.
type untold struct{}

// at finds the field of an answer at a path.
func at(answer any, path string, known Known) (any, bool) {
	for _, step := range steps.FindAllStringSubmatch(path, -1) {
		if name := step[2]; name != "" {
			fields, is := answer.(map[string]any)
			if !is {
				return nil, false
			}
			if answer, is = fields[name]; !is {
				return untold{}, false
			}
			continue
		}
		list, is := answer.([]any)
		if !is {
			return nil, false
		}
		if field, value, is := strings.Cut(step[1], "="); is {
			counts := strings.HasPrefix(field, "#")
			having, err := known.having(list, strings.TrimPrefix(field, "#"), value)
			if err != nil || !counts && len(having) == 0 {
				return nil, false
			}
			if list = having; !counts {
				answer = list[0]
				continue
			}
			answer = int64(len(list))
		} else if step[1] == "#" {
			answer = int64(len(list))
		} else if number, _ := strconv.Atoi(step[1]); number < len(list) {
			answer = list[number]
		} else {
			return nil, false
		}
	}
	return answer, true
}

// having gives the entries of a list whose field has a value: a number, a text in quotes, or "@" and the name of a hole.
func (known Known) having(list []any, field, value string) (found []any, err error) {
	var wanted any
	if hole, is := strings.CutPrefix(value, "@"); is {
		wanted, err = known.value(map[string]any{"hole": hole})
	} else if text, is := strings.CutPrefix(value, "'"); is {
		wanted = strings.TrimSuffix(text, "'")
	} else {
		wanted, err = strconv.ParseInt(value, 10, 64)
	}
	for _, one := range list {
		if fields, is := one.(map[string]any); is && fields[field] == wanted {
			found = append(found, one)
		}
	}
	return found, err
}

// differences tells what of an answer is not as expected.
func differences(expected []Constraint, version int, answer any, known Known) (wrong []string) {
	for _, one := range expected {
		if !has(one.Versions, version) {
			continue
		}
		if what := one.difference(answer, known); what != "" {
			wrong = append(wrong, one.Path+": "+what)
		}
	}
	return wrong
}

func (one *Constraint) difference(answer any, known Known) string {
	found, is := at(answer, one.Path, known)
	switch {
	case found == untold{} && len(one.OneOf) == 1 && one.OneOf[0] == json.Number("-1"): // a tagged field that has its default
		return ""
	case !is:
		return "there is none"
	case one.OneOf != nil && one.Free.allows(found):
		return ""
	case one.OneOf != nil:
		return one.notOneOf(found, known)
	case one.AtLeast != nil:
		least, err := known.value(one.AtLeast)
		if err != nil {
			return err.Error()
		}
		if number, is := found.(int64); !is || number < least.(int64) {
			return fmt.Sprintf("%v, not at least %v", found, least)
		}
	case one.NoneOf != nil:
		for _, given := range one.NoneOf {
			if value, err := known.value(given); err != nil || value == found {
				return fmt.Sprintf("%v, as before", shown(found))
			}
		}
	case one.NotEmpty:
		if slices.Contains([]any{int64(0), int64(-1), "", nil, Bytes(""), Bytes(make([]byte, 16))}, found) {
			return fmt.Sprintf("%v, not something of its own", found)
		}
	case one.Records != nil:
		data, _ := found.(Bytes)
		if what := one.notTheRecords([]byte(data), known); what != "" {
			return what
		}
		return one.notTheirContents([]byte(data), known)
	}
	return ""
}

func (one *Constraint) notOneOf(found any, known Known) string {
	if list, is := found.([]any); is {
		found = fmt.Sprint(list) // a list is none of the values
	}
	for _, given := range one.OneOf {
		value, err := known.value(given)
		if err != nil {
			return err.Error()
		}
		if value == found {
			return ""
		}
	}
	return fmt.Sprintf("%v, not one of %v", shown(found), one.OneOf)
}

// notTheRecords looks at the headers of batches (61 bytes): from the first offset on they are to cover these offsets.
func (one *Constraint) notTheRecords(data []byte, known Known) string {
	var offsets, epochs []int64
	for len(data) > 0 {
		if len(data) < 61 || data[16] != 2 {
			return fmt.Sprintf("no batch begins with %x", data)
		}
		base, size := int64(binary.BigEndian.Uint64(data)), 12+int64(int32(binary.BigEndian.Uint32(data[8:])))
		epoch, delta := int64(int32(binary.BigEndian.Uint32(data[12:]))), int64(int32(binary.BigEndian.Uint32(data[23:])))
		if size < 61 || size > int64(len(data)) {
			return fmt.Sprintf("a batch of %d bytes, where %d are left", size, len(data))
		}
		first := int64(0)
		if len(one.Records.Offsets) > 0 {
			first = one.Records.Offsets[0]
		}
		for offset := max(base, first); offset <= base+delta && len(offsets) < 1000; offset++ {
			offsets, epochs = append(offsets, offset), append(epochs, epoch)
		}
		data = data[size:]
	}
	if !slices.Equal(offsets, one.Records.Offsets) {
		return fmt.Sprintf("the records at %v, not at %v", offsets, one.Records.Offsets)
	}
	for number, given := range one.Records.LeaderEpochs {
		if value, err := known.value(given); err != nil || value != epochs[number] {
			return fmt.Sprintf("leader epochs %v, not %v", epochs, one.Records.LeaderEpochs)
		}
	}
	return ""
}

// notTheirContents looks at the values, the timestamps and the keys of the records at the offsets, in batches that are not compressed.
func (one *Constraint) notTheirContents(data []byte, known Known) string {
	var values, times, keys []any
	if one.Records.Values == nil && one.Records.Times == nil && one.Records.Keys == nil {
		return ""
	}
	for len(data) > 0 {
		size := 12 + int(binary.BigEndian.Uint32(data[8:]))
		base, attributes := int64(binary.BigEndian.Uint64(data)), binary.BigEndian.Uint16(data[21:])
		first, last := int64(binary.BigEndian.Uint64(data[27:])), int64(binary.BigEndian.Uint64(data[35:]))
		if attributes&7 != 0 {
			return "compressed records, where they were sent as they are"
		}
		rest := data[61:size]
		for count := binary.BigEndian.Uint32(data[57:]); count > 0; count-- {
			length, read := binary.Varint(rest)
			if read <= 0 || length < 0 || int(length) > len(rest)-read {
				return "no record is where one should be"
			}
			record := rest[read : read+int(length)]
			rest = rest[read+int(length):]
			if len(record) == 0 {
				return "a record of no bytes"
			}
			time, used := binary.Varint(record[1:]) // behind the attributes
			record = record[1+max(used, 0):]
			offset, used := binary.Varint(record)
			record = record[max(used, 0):]
			var fields [2]string // key and value
			for number := range fields {
				size, used := binary.Varint(record)
				record = record[max(used, 0):]
				if size > int64(len(record)) {
					return "a record that ends too soon"
				}
				if size > 0 {
					fields[number], record = string(record[:size]), record[size:]
				}
			}
			time += first
			if attributes&8 != 0 { // the broker's own time, for all of them
				time = last
			}
			if slices.Contains(one.Records.Offsets, base+offset) {
				values, times = append(values, Bytes(fields[1])), append(times, time)
				keys = append(keys, Bytes(fields[0]))
			}
		}
		data = data[size:]
	}
	if what := unlike("values", one.Records.Values, values, known); what != "" {
		return what
	}
	if what := unlike("times", one.Records.Times, times, known); what != "" {
		return what
	}
	return unlike("keys", one.Records.Keys, keys, known)
}

// unlike compares what was found with what a case gives, if it gives something.
func unlike(name string, given, found []any, known Known) string {
	if given == nil {
		return ""
	}
	var expected []any
	for _, one := range given {
		value, err := known.value(one)
		if err != nil {
			return err.Error()
		}
		expected = append(expected, value)
	}
	isLike := func(expected, found any) bool { return expected == nil || expected == found }
	if !slices.EqualFunc(expected, found, isLike) {
		return fmt.Sprintf("%s %v, not %v", name, found, expected)
	}
	return ""
}

func shown(value any) string {
	if raw, is := value.(Bytes); is {
		return fmt.Sprintf("%x", string(raw))
	}
	return strings.TrimSpace(fmt.Sprintf("%#v", value))
}
