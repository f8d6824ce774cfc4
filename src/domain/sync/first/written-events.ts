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

/** Longer texts are not copied into an answer, so that they must not change while it is sent. */
const MAX_COPIED_BYTES = 16 * 1024
const ZERO = 0x30
/** Stands in texts for what is left open. JSON has no such character. */
const OPEN = '\0'
const NO_EVENTS_BYTES = 500
const EVENT_BYTES = 8
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
}

/** Events in the client format, written once for many readers. When they are written again, only what is open is filled in. */
export class WrittenEvents {
  /** The events, with a comma between two. */
  #json: Buffer
  /** Where each begins. At the end, where the next one would. */
  #starts: number[] = []
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
      this.#starts.push(at)
      at = this.#addAge(ts, at + lengthOf(head)) + lengthOf(rest[0]!)
      gaps.forEach((gap, index) => {
        if (gap.kind === 'age') at = this.#addAge(gap.ts, at)
        else this.#addPlace(at, gap)
        at += lengthOf(rest[index + 1]!)
      })
    }
    this.#starts.push(at + 1)
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
    const starts = [0]
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
      starts.push(++at)
    }
    written.#starts = starts
    return written
  }

  /** Bytes in memory. */
  get bytes(): number {
    const { length } = this
    const open = AGE_BYTES * this.#ts.length + PLACE_BYTES * this.#places.length + MARK_BYTES * this.#marks.length
    return NO_EVENTS_BYTES + this.#json.length + EVENT_BYTES * length + open
  }

  get jsonBytes(): number {
    return this.#json.length
  }

  get length(): number {
    return this.#starts.length - 1
  }

  /** The threads of which it says whether the reader has a part in them, by the numbers of their roots. */
  get threads(): number[] {
    return this.#places.flatMap(({ gap }) => (gap.kind === 'thread' ? [gap.rootNid] : []))
  }

  /** Writes some of the events, with commas between them. */
  write(out: JsonBytes, reader: WrittenFor, from = 0, to = this.length): void {
    if (from >= to) return
    this.#setAges(reader.now)
    const end = this.#starts[to]! - 1
    let written = this.#starts[from]!
    if (!this.#isOpenFor(reader)) {
      this.#copy(out, written, end)
      return
    }
    for (const { at, gap } of this.#places) {
      if (at < written || at > end) continue
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
    const json = this.#json.subarray(from, to)
    out.bytes(json.length > MAX_COPIED_BYTES ? Buffer.from(json) : json)
  }

  #setAges(now: number): void {
    const before = this.#now
    if (now === before) return
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
    this.#starts = this.#starts.map(mover(before, shifts))
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
