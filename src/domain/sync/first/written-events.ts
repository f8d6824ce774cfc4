import type { JsonBytes } from '../../../core/json-bytes.ts'
import type { TextEvent } from '../../../store/events/client-texts.ts'
import {
  clientEventParts,
  type Gap,
  isMarkedFor,
  type Mark,
  ownText,
  type Reading,
} from '../../rooms/room/client-event.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'

const ZERO = 0x30
/** Stands in texts for what is left open. JSON has no such character. */
const OPEN = '\0'
const NO_EVENTS_BYTES = 500
const AGE_BYTES = 3 * 8
const PLACE_BYTES = 200
const MARK_BYTES = 80

/** A place in the text where something stands for some readers. */
interface Place {
  readonly at: number
  readonly gap: ReaderGap
}

type ReaderGap = Exclude<Gap, { readonly kind: 'age' }>

/** An event in the client format, cut at its age and at each other place that stays open. */
export interface OpenEvent {
  /** Up to the age. */
  readonly head: string
  /** The time from which the age counts. */
  readonly ts: number
  /** The places after it. */
  readonly gaps: readonly Gap[]
  /** What stands before the first of them, and after each. */
  readonly rest: readonly string[]
}

/** Bytes of the end of `unsigned` and of the event. */
const OBJECTS_END = '}}'.length
const NO_EVENTS: readonly OpenEvent[] = []

/** Who reads, and when. */
export interface WrittenFor extends Reading {
  /** The threads in which the reader has a part, by the numbers of their roots. */
  readonly parts?: ReadonlySet<number>
  /** How many milliseconds ages may be older than `now`. */
  readonly agesFor?: number
}

/** What was written once for many readers. When it is written again, only what is open is filled in. */
export interface Written {
  /** Bytes in memory. */
  readonly bytes: number
  readonly jsonBytes: number
  write(out: JsonBytes, reader: WrittenFor): void
}

/** Events in the client format. */
export class WrittenEvents implements Written {
  /** The events, with a comma between two. */
  #json: Buffer
  /** Of pieces that were put together, where each begins, and where it ends. */
  #pieces: number[] = []
  /** Of each age, the time from which it counts, where it ends, and of how many digits it is. */
  readonly #ts: number[] = []
  #ends: number[] = []
  readonly #digits: number[] = []
  #places: Place[] = []
  /** Whose own some of the events are, each once. */
  readonly #marks: Mark[] = []
  #hasThreads = false
  #now: number

  /** @param now milliseconds */
  constructor(events: readonly OpenEvent[], now: number) {
    this.#now = now
    let text = ''
    for (const { head, ts, gaps, rest } of events) {
      text += `${text === '' ? '' : ','}${head}${ageAt(ts, now)}${rest[0]}`
      gaps.forEach((gap, index) => {
        text += `${gap.kind === 'age' ? ageAt(gap.ts, now) : ''}${rest[index + 1]}`
      })
    }
    const bytes = Buffer.byteLength(text)
    this.#json = Buffer.from(text)
    const lengthOf = bytes === text.length ? (piece: string) => piece.length : Buffer.byteLength
    let at = 0
    for (const { head, ts, gaps, rest } of events) {
      if (at > 0) at++
      at = this.#addAge(ts, at + lengthOf(head)) + lengthOf(rest[0]!)
      gaps.forEach((gap, index) => {
        if (gap.kind === 'age') at = this.#addAge(gap.ts, at)
        else this.#addPlace(at, gap)
        at += lengthOf(rest[index + 1]!)
      })
    }
  }

  /**
   * Events that are written already.
   *
   * @param json with a comma between two events, and with ages as of `now`
   * @param afterAge what follows each age
   */
  static ofText(
    json: string,
    events: readonly (readonly [...TextEvent, ...unknown[]])[],
    afterAge: string,
    now: number,
  ): WrittenEvents {
    const written = new WrittenEvents(NO_EVENTS, now)
    written.#json = Buffer.from(json)
    let at = 0
    for (let index = 0; index < events.length; index++) {
      // By their places: to take an array apart takes long in code that runs for the first time.
      const event = events[index]!
      const ts = event[2]
      const txnId = event[6]
      at += event[3]
      const end = at - afterAge.length
      written.#ts.push(ts)
      written.#ends.push(end)
      written.#digits.push(digitsOf(now - ts))
      if (txnId !== null) {
        const mark = { txnToken: event[5] ?? undefined, senderNid: event[1] }
        written.#addPlace(at - OBJECTS_END, { kind: 'own', mark, txnId })
      }
      at++
    }
    return written
  }

  /** Texts and events after each other, in one piece. `part` gives the events that are at a place among these. */
  static joined(pieces: readonly (string | WrittenEvents)[], now: number): WrittenEvents {
    const joined = new WrittenEvents(NO_EVENTS, now)
    const json: Buffer[] = []
    let at = 0
    for (const piece of pieces) {
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece.#jsonAt(now)
      if (typeof piece !== 'string') joined.#take(piece, at)
      json.push(bytes)
      joined.#pieces.push(at, at + bytes.length)
      at += bytes.length
    }
    joined.#json = Buffer.concat(json, at)
    return joined
  }

  #jsonAt(now: number): Buffer {
    this.#setAges(now)
    return this.#json
  }

  /** Takes over what is open in others, which come at a place. */
  #take(others: WrittenEvents, at: number): void {
    for (let index = 0; index < others.#ts.length; index++) {
      this.#ts.push(others.#ts[index]!)
      this.#ends.push(at + others.#ends[index]!)
      this.#digits.push(others.#digits[index]!)
    }
    for (const place of others.#places) this.#addPlace(at + place.at, place.gap)
  }

  /** One of the pieces that were put together. It keeps all of them in memory. */
  part(place: number): Written {
    const [begin, end] = [2 * place, 2 * place + 1]
    const jsonBytes = () => this.#pieces[end]! - this.#pieces[begin]!
    const bytes = () => this.bytes
    return {
      get bytes() {
        return bytes()
      },
      get jsonBytes() {
        return jsonBytes()
      },
      write: (out, reader) => {
        this.#setAges(reader.now, reader.agesFor)
        this.#write(out, reader, this.#pieces[begin]!, this.#pieces[end]!)
      },
    }
  }

  /** Bytes in memory. */
  get bytes(): number {
    const open = AGE_BYTES * this.#ts.length + PLACE_BYTES * this.#places.length + MARK_BYTES * this.#marks.length
    return NO_EVENTS_BYTES + this.#json.length + open
  }

  get jsonBytes(): number {
    return this.#json.length
  }

  /** The threads of which it says whether the reader has a part in them, by the numbers of their roots. */
  get threads(): number[] {
    return this.#places.flatMap(({ gap }) => (gap.kind === 'thread' ? [gap.rootNid] : []))
  }

  write(out: JsonBytes, reader: WrittenFor): void {
    this.#setAges(reader.now, reader.agesFor)
    this.#write(out, reader, 0, this.#json.length)
  }

  #write(out: JsonBytes, reader: WrittenFor, begin: number, end: number): void {
    if (begin === end) return
    let written = begin
    if (!this.#isOpenFor(reader)) {
      this.#copy(out, written, end)
      return
    }
    for (const { at, gap } of this.#places) {
      if (at < begin || at > end) continue
      const text = textFor(gap, reader)
      if (text === '') continue
      this.#copy(out, written, at)
      out.text(text)
      written = at
    }
    this.#copy(out, written, end)
  }

  /** @returns where it ends */
  #addAge(ts: number, from: number): number {
    const digits = ageAt(ts, this.#now).length
    this.#ts.push(ts)
    this.#ends.push(from + digits)
    this.#digits.push(digits)
    return from + digits
  }

  #addPlace(at: number, gap: ReaderGap): void {
    this.#places.push({ at, gap })
    if (gap.kind === 'own') this.#addMark(gap.mark)
    else this.#hasThreads = true
  }

  #addMark({ txnToken, senderNid }: Mark): void {
    const isKnown = this.#marks.some((mark) => mark.txnToken === txnToken && mark.senderNid === senderNid)
    if (!isKnown) this.#marks.push({ txnToken, senderNid })
  }

  /** Whether anything stands in the places that are left open. For nearly all readers nothing does. */
  #isOpenFor(reader: WrittenFor): boolean {
    return this.#hasThreads || this.#marks.some((mark) => isMarkedFor(mark, reader))
  }

  #copy(out: JsonBytes, from: number, to: number): void {
    // It changes with the next ages.
    out.bytes(this.#json.subarray(from, to), false)
  }

  #setAges(now: number, agesFor = 0): void {
    const before = this.#now
    if (now >= before && now - before <= agesFor) return
    this.#now = now
    const json = this.#json
    for (let index = 0; index < this.#ts.length; index++) {
      const ts = this.#ts[index]!
      const place = { end: this.#ends[index]!, digits: this.#digits[index]! }
      if (putNumber(json, place, Math.max(0, before - ts), Math.max(0, now - ts))) continue
      this.#writeAges(now)
      return
    }
  }

  /** Makes room for ages of more digits, or of fewer. */
  #writeAges(now: number): void {
    const pieces: Buffer[] = []
    const before = this.#ends
    let taken = 0
    let shift = 0
    const shifts: number[] = []
    before.forEach((end, index) => {
      const age = ageAt(this.#ts[index]!, now)
      const digits = this.#digits[index]!
      pieces.push(this.#json.subarray(taken, end - digits), Buffer.from(age))
      taken = end
      shift += age.length - digits
      shifts.push(shift)
      this.#digits[index] = age.length
    })
    pieces.push(this.#json.subarray(taken))
    this.#json = Buffer.concat(pieces)
    this.#ends = before.map((end, index) => end + shifts[index]!)
    this.#pieces = this.#pieces.map(mover(before, shifts))
    const move = mover(before, shifts)
    this.#places = this.#places.map(({ at, gap }) => ({ at: move(at), gap }))
  }
}

/** How many digits an age has. */
function digitsOf(age: number): number {
  let digits = 1
  for (let bound = 10; age >= bound; bound *= 10) digits++
  return digits
}

const ageAt = (ts: number, now: number): string => `${Math.max(0, now - ts)}`

/** Says where positions, which are asked in their order, are to be found once all up to each of these ends has grown by so much. */
function mover(ends: readonly number[], shifts: readonly number[]): (at: number) => number {
  let passed = 0
  return (at) => {
    while (passed < ends.length && ends[passed]! <= at) passed++
    return at + (shifts[passed - 1] ?? 0)
  }
}

/** What stands in a gap that is filled in for each reader. */
function textFor(gap: ReaderGap, reader: WrittenFor): string {
  return gap.kind === 'own' ? ownText(gap.mark, gap.txnId, reader) : `${reader.parts?.has(gap.rootNid) === true}`
}

/** Writes a whole number over another one. False if that one has not as many digits; something else is written then. */
function putNumber(
  json: Buffer,
  { end, digits }: { end: number; digits: number },
  before: number,
  number: number,
): boolean {
  let rest = number
  let known = before
  // A moment later only the last digits differ.
  for (let at = end - 1; at >= end - digits && rest !== known; at--) {
    const tenth = Math.floor(rest / 10)
    json[at] = ZERO + rest - 10 * tenth
    rest = tenth
    known = Math.floor(known / 10)
  }
  return rest === known && (digits === 1 || json[end - digits] !== ZERO)
}

/** Events for readers of whom each may be this one. References of the events, and of what is bundled with them, must be loaded. */
export function openEvents(events: readonly RoomEvent[], reading: Reading): OpenEvent[] {
  let gaps: Gap[] = []
  const leaveOpen = (gap: Gap): string => {
    gaps.push(gap)
    return OPEN
  }
  const open: Reading = { ...reading, leaveOpen }
  return events.map((event) => {
    gaps = []
    const { head, rest } = clientEventParts(event, open)
    // The first gap is the age.
    return { head, ts: event.ts, gaps: gaps.slice(1), rest: rest.split(OPEN) }
  })
}
