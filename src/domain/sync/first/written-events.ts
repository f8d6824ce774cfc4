import type { JsonBytes } from '../../../core/json-bytes.ts'
import { clientEventParts, type Reading } from '../../rooms/room/client-event.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'

/** Longer texts are not copied into an answer, so that they must not change while it is sent. */
const MAX_COPIED_BYTES = 16 * 1024
const ZERO = 0x30
const NO_EVENTS_BYTES = 400
const NUMBERS_BYTES = 4 * 8

/** Events in the client format, written once for many readers. When they are written again, only their ages are set. */
export class WrittenEvents {
  /** The events, with a comma between two. */
  #json: Buffer
  /** When each was sent, in milliseconds. */
  readonly #ts: number[] = []
  /** Where each begins. At the end, where the next one would. */
  readonly #starts: number[] = []
  /** Where the age of each ends, and of how many digits it is. */
  readonly #ends: number[] = []
  readonly #digits: number[] = []
  #now: number

  /** @param reading of a reader for whom none of the events is written as for nobody else. Their references must be loaded. */
  constructor(events: readonly RoomEvent[], reading: Reading) {
    const parts: string[] = []
    let at = 0
    for (const event of events) {
      const { head, age, rest } = clientEventParts(event, reading)
      parts.push(parts.length === 0 ? '' : ',', head, age, rest)
      if (at > 0) at++
      this.#ts.push(event.ts)
      this.#starts.push(at)
      at += Buffer.byteLength(head) + age.length
      this.#ends.push(at)
      this.#digits.push(age.length)
      at += Buffer.byteLength(rest)
    }
    this.#starts.push(at + 1)
    this.#json = Buffer.from(parts.join(''))
    this.#now = reading.now
  }

  /** Bytes in memory. */
  get bytes(): number {
    return NO_EVENTS_BYTES + this.#json.length + NUMBERS_BYTES * this.#ts.length
  }

  get length(): number {
    return this.#ts.length
  }

  /** Writes some of the events, with commas between them. @param now milliseconds; ages are counted up to this time */
  write(out: JsonBytes, now: number, from = 0, to = this.length): void {
    if (from >= to) return
    this.#setAges(now)
    const json = this.#json.subarray(this.#starts[from], this.#starts[to]! - 1)
    out.bytes(json.length > MAX_COPIED_BYTES ? Buffer.from(json) : json)
  }

  #setAges(now: number): void {
    if (now === this.#now) return
    this.#now = now
    const json = this.#json
    for (let index = 0; index < this.#ts.length; index++) {
      const age = Math.max(0, now - this.#ts[index]!)
      if (putNumber(json, this.#ends[index]!, this.#digits[index]!, age)) continue
      this.#writeAges(now)
      return
    }
  }

  /** Makes room for ages of more digits, or of fewer. */
  #writeAges(now: number): void {
    const pieces: Buffer[] = []
    let taken = 0
    let shift = 0
    for (let index = 0; index < this.#ts.length; index++) {
      const age = `${Math.max(0, now - this.#ts[index]!)}`
      const end = this.#ends[index]!
      const digits = this.#digits[index]!
      pieces.push(this.#json.subarray(taken, end - digits), Buffer.from(age))
      taken = end
      shift += age.length - digits
      this.#ends[index] = end + shift
      this.#digits[index] = age.length
      this.#starts[index + 1] = this.#starts[index + 1]! + shift
    }
    pieces.push(this.#json.subarray(taken))
    this.#json = Buffer.concat(pieces)
  }
}

/** Writes a whole number with exactly so many digits. False if it does not have so many; something else is written then. */
function putNumber(json: Buffer, end: number, digits: number, number: number): boolean {
  let rest = number
  for (let at = end - 1; at >= end - digits; at--) {
    const tenth = Math.floor(rest / 10)
    json[at] = ZERO + rest - 10 * tenth
    rest = tenth
  }
  return rest === 0 && (digits === 1 || json[end - digits] !== ZERO)
}
