import type pg from 'pg'

/**
 * Readers for Postgres' binary result format. Binary results halve the bytes of `bytea` and skip text parsing of integers.
 * Only the types that this database's columns and aggregates have are here; an unknown one is a defect and throws.
 */
const BOOL = 16
const BYTEA = 17
const INT8 = 20
const INT2 = 21
const INT4 = 23
const TEXT = 25
const FLOAT8 = 701
const VARCHAR = 1043
const NAME = 19
const UNKNOWN = 705
const OID = 26
const INT4_ARRAY = 1007
const TEXT_ARRAY = 1009
const INT8_ARRAY = 1016
const VOID = 2278

/** Every int8 here is a position, an id or a time in milliseconds, all below 2^53. */
function readInt8(buffer: Buffer, offset: number): number {
  return buffer.readInt32BE(offset) * 0x1_0000_0000 + buffer.readUInt32BE(offset + 4)
}

/** One-dimensional arrays: header of five int32 (dimensions, null flag, element type, length, lower bound), then length-prefixed elements. */
function arrayOf<T>(read: (buffer: Buffer, offset: number, length: number) => T): (buffer: Buffer) => T[] {
  return (buffer) => {
    if (buffer.readInt32BE(0) === 0) return []
    const count = buffer.readInt32BE(12)
    const items: T[] = new Array(count)
    let offset = 20
    for (let i = 0; i < count; i++) {
      const length = buffer.readInt32BE(offset)
      items[i] = read(buffer, offset + 4, length)
      offset += 4 + length
    }
    return items
  }
}

const readText = (buffer: Buffer): string => buffer.toString('utf8')

const READERS = new Map<number, (buffer: Buffer) => unknown>([
  [BOOL, (buffer) => buffer[0] === 1],
  [BYTEA, (buffer) => Buffer.from(buffer)],
  [INT8, (buffer) => readInt8(buffer, 0)],
  [INT2, (buffer) => buffer.readInt16BE(0)],
  [INT4, (buffer) => buffer.readInt32BE(0)],
  [OID, (buffer) => buffer.readUInt32BE(0)],
  [FLOAT8, (buffer) => buffer.readDoubleBE(0)],
  [TEXT, readText],
  [VARCHAR, readText],
  [NAME, readText],
  [UNKNOWN, readText],
  [VOID, () => undefined],
  [INT4_ARRAY, arrayOf((buffer, offset) => buffer.readInt32BE(offset))],
  [INT8_ARRAY, arrayOf((buffer, offset) => readInt8(buffer, offset))],
  [TEXT_ARRAY, arrayOf((buffer, offset, length) => buffer.toString('utf8', offset, offset + length))],
])

function missing(oid: number): (buffer: Buffer) => never {
  return () => {
    throw new Error(`no binary reader for Postgres type ${oid}: add it to wire-types.ts or cast it in the query`)
  }
}

export const BINARY_TYPES = {
  getTypeParser: (oid: number) => READERS.get(oid) ?? missing(oid),
} as unknown as pg.CustomTypesConfig
