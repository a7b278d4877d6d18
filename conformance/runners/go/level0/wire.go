package level0

// Bytes: requests put together from their parts, answers read by their layouts.

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
)

// Known are the values of the holes: int64, string, or Bytes.
type Known map[string]any

// Bytes are what is no text: ids and records. As a string they can be compared.
type Bytes string

// unknownHole is a hole that no answer has told. A case that needs it is skipped.
type unknownHole string

func (name unknownHole) Error() string { return fmt.Sprintf("no answer has told %q", string(name)) }

// value fills the hole in a value of a case, if it is one.
func (known Known) value(given any) (any, error) {
	switch given := given.(type) {
	case json.Number:
		return given.Int64()
	case map[string]any:
		if digits, is := given["hex"].(string); is {
			raw, err := hex.DecodeString(digits)
			return Bytes(raw), err
		}
		name := given["hole"].(string)
		found, is := known[name]
		if !is {
			return nil, unknownHole(name)
		}
		if plus, is := given["plus"].(json.Number); is {
			more, err := plus.Int64()
			return found.(int64) + more, err
		}
		return found, nil
	}
	return given, nil
}

// render puts parts together: hexadecimal digits, holes, and parts with their checksum before them.
func (known Known) render(parts []any) ([]byte, error) {
	var data []byte
	for _, part := range parts {
		found, err := known.renderPart(part)
		if err != nil {
			return nil, err
		}
		data = append(data, found...)
	}
	return data, nil
}

func (known Known) renderPart(part any) ([]byte, error) {
	if digits, is := part.(string); is {
		return hex.DecodeString(digits)
	}
	hole := part.(map[string]any)
	if inside, is := hole["crc32c"]; is {
		data, err := known.render(inside.([]any))
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		return append(binary.BigEndian.AppendUint32(nil, sum), data...), err
	}
	found, err := known.value(part)
	if err != nil {
		return nil, err
	}
	switch kind := hole["as"]; kind {
	case "int16":
		return binary.BigEndian.AppendUint16(nil, uint16(found.(int64))), nil
	case "int32":
		return binary.BigEndian.AppendUint32(nil, uint32(found.(int64))), nil
	case "int64":
		return binary.BigEndian.AppendUint64(nil, uint64(found.(int64))), nil
	case "uuid":
		return []byte(found.(Bytes)), nil
	case "string":
		text := found.(string)
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...), nil
	case "compact_string":
		text := found.(string)
		return append(binary.AppendUvarint(nil, uint64(len(text)+1)), text...), nil
	default:
		return nil, fmt.Errorf("there is no kind %v of holes", kind)
	}
}

// Field is one entry of a layout.
type Field struct {
	Name     string
	Type     string
	Nullable bool
	Of       *Field           // of an array
	Fields   []Field          // of a struct
	Tagged   map[string]Field // of a section of tagged fields
}

// Reader reads an answer. What does not fit is a panic with a malformed, which `readAnswer` makes an error.
type Reader struct{ left []byte }

type malformed string

// readAnswer gives the fields of an answer by name.
func readAnswer(layout []Field, frame []byte) (answer map[string]any, err error) {
	defer func() {
		if what, is := recover().(malformed); is {
			err = fmt.Errorf("its answer cannot be read: %s; %x", string(what), frame)
		}
	}()
	reader := Reader{frame}
	return reader.fields(layout), nil
}

func (r *Reader) fields(layout []Field) map[string]any {
	found := map[string]any{}
	for _, field := range layout {
		if field.Type == "tags" {
			r.tags(field.Tagged, found)
		} else {
			found[field.Name] = r.field(field)
		}
	}
	return found
}

func (r *Reader) tags(known map[string]Field, found map[string]any) {
	for count := r.uvarint(); count > 0; count-- {
		tag, size := fmt.Sprint(r.uvarint()), r.uvarint()
		inside := Reader{r.take(size)}
		if field, is := known[tag]; is {
			found[field.Name] = inside.field(field)
		}
	}
}

func (r *Reader) field(field Field) any {
	switch field.Type {
	case "bool":
		return r.take(1)[0] != 0
	case "int8":
		return int64(int8(r.take(1)[0]))
	case "int16":
		return r.int16()
	case "uint16":
		return int64(uint16(r.int16()))
	case "int32":
		return r.int32()
	case "uint32":
		return int64(uint32(r.int32()))
	case "int64":
		return int64(binary.BigEndian.Uint64(r.take(8)))
	case "float64":
		return math.Float64frombits(binary.BigEndian.Uint64(r.take(8)))
	case "uuid":
		return Bytes(r.take(16))
	case "struct":
		if field.Nullable && int8(r.take(1)[0]) < 0 {
			return nil
		}
		return r.fields(field.Fields)
	}
	size := r.size(field.Type)
	if size < 0 {
		if !field.Nullable {
			panic(malformed(field.Name + " is null where it must not be"))
		}
		return nil
	}
	switch field.Type {
	case "string", "compact_string":
		return string(r.take(size))
	case "bytes", "compact_bytes":
		return Bytes(r.take(size))
	}
	if size > int64(len(r.left)) {
		panic(malformed(fmt.Sprintf("%s has %d entries in %d bytes", field.Name, size, len(r.left))))
	}
	list := make([]any, 0, size)
	for ; size > 0; size-- {
		list = append(list, r.field(*field.Of))
	}
	return list
}

// size reads the length of a text, of bytes or of an array: -1 is null.
func (r *Reader) size(kind string) int64 {
	switch kind {
	case "string":
		return r.int16()
	case "bytes", "array":
		return r.int32()
	case "compact_string", "compact_bytes", "compact_array":
		return r.uvarint() - 1
	}
	panic(malformed("the layout has an unknown type " + kind))
}

func (r *Reader) int16() int64 { return int64(int16(binary.BigEndian.Uint16(r.take(2)))) }
func (r *Reader) int32() int64 { return int64(int32(binary.BigEndian.Uint32(r.take(4)))) }

func (r *Reader) uvarint() int64 {
	value, size := binary.Uvarint(r.left)
	if size <= 0 || value > math.MaxUint32 {
		panic(malformed("a variable length number does not end"))
	}
	r.left = r.left[size:]
	return int64(value)
}

func (r *Reader) take(size int64) []byte {
	if size < 0 || size > int64(len(r.left)) {
		panic(malformed(fmt.Sprintf("%d bytes are wanted, and %d are left", size, len(r.left))))
	}
	found := r.left[:size]
	r.left = r.left[size:]
	return found
}
