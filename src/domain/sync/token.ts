import { WRITER_SPAN } from '../../store/events/events.ts'

/**
 * How far a client has read each stream. Opaque to clients.
 *
 * `events` has one position per writer, so that several processes can write at once. An event is new to a reader when its number is above
 * the reader's position for its writer.
 */
export interface StreamPosition {
  readonly events: EventPosition
  /** Account data, receipts, devices. */
  readonly ledger: number
  /** The ledger position up to which the device got its messages. It is behind `ledger` while there are too many for one answer. */
  readonly toDevice: number
  /** Typing and presence, which live in memory. Counted from the start of one run of the server. */
  readonly ephemeral: number
  readonly run: string
}

/** The newest event number seen of each writer, by the writer's index. */
export type EventPosition = readonly number[]

/** Hexadecimal digits of a run, before its epoch. */
const RUN_DIGITS = 12

/** The epoch of the restore after which a position was given out; empty before the first. */
export function epochOf({ run }: StreamPosition): string {
  return run.slice(RUN_DIGITS)
}

/** Whether two positions are the same in every stream. */
export function isSamePosition(one: StreamPosition, other: StreamPosition): boolean {
  return (
    one.ledger === other.ledger &&
    one.toDevice === other.toDevice &&
    one.ephemeral === other.ephemeral &&
    one.run === other.run &&
    isSamePlace(one.events, other.events)
  )
}

export function isSamePlace(one: EventPosition, other: EventPosition): boolean {
  if (one === other) return true
  return one.length === other.length && one.every((position, writer) => position === other[writer])
}

export function writerOf(eventNid: number): number {
  return Math.floor(eventNid / WRITER_SPAN)
}

export function isNewer(eventNid: number, position: EventPosition): boolean {
  return eventNid > (position[writerOf(eventNid)] ?? 0)
}

/**
 * `s`, then the parts: event positions separated by dots, the ledger, the run and the ephemeral position, and the position for messages to
 * the device if that differs from the ledger's.
 */
export function encodeStreamToken({ events, ledger, toDevice, ephemeral, run }: StreamPosition): string {
  const rest = toDevice === ledger ? '' : `_${toDevice}`
  return `s${events.join('.')}_${ledger}_${run}.${ephemeral}${rest}`
}

/** Keeps the newest token, since many ask for it one after another. A position must not change. */
export function createTokenOf(): (position: StreamPosition) => string {
  let last: StreamPosition | undefined
  let token = ''
  return (position) => {
    if (position !== last) {
      token = encodeStreamToken(position)
      last = position
    }
    return token
  }
}

const TOKEN =
  /^s(\d{1,16}(?:\.\d{1,16})*)_(\d{1,16})_([a-z0-9]{1,16})\.(\d{1,16})(?:_(\d{1,16}))?(?:~[0-9a-f.]{1,70})?$/

/** The position, or undefined for a text that is no token of ours. A position of a sliding sync is one too; its end is left out. */
export function decodeStreamToken(token: string): StreamPosition | undefined {
  const match = TOKEN.exec(token)
  if (!match) return undefined
  const [, events, ledger, run, ephemeral, toDevice = ledger] = match
  return {
    events: events!.split('.').map(Number),
    ledger: Number(ledger),
    toDevice: Number(toDevice),
    run: run!,
    ephemeral: Number(ephemeral),
  }
}

/** The event position in a sync token, or undefined for a text that is no sync token. */
export function eventPositionOf(token: string): EventPosition | undefined {
  return decodeStreamToken(token)?.events
}
