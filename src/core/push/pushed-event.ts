import { FoldedText } from '../glob.ts'
import type { JsonObject, JsonValue } from '../json.ts'
import { type PropertyPath, propertyAt } from '../property-path.ts'

/** The part of an event that push rules use. */
export interface PushEvent extends JsonObject {
  type: string
  sender: string
  state_key?: string
  content: JsonObject
}

/** The facts about the user and the room that push rules use. */
export interface PushContext {
  readonly userId: string
  /** The user's display name in the room. */
  readonly displayName: string | undefined
  /** Joined members. */
  readonly memberCount: number
  /** An integer. That of a creator in room version 12 is infinite. */
  readonly senderPower: number | bigint
  /** The power level that a notification of everyone takes: `notifications.room` for the key `room`. */
  readonly powerToNotify: (key: string) => number | bigint
  /** Whether the user follows the thread that the event is in. Undefined if it is in none. */
  readonly follows?: boolean | undefined
}

/**
 * Steps of searching that the rules of one user may take for an event, and those of all its readers. A step is about one character that a
 * pattern is compared with. A pattern whose search would exceed them does not match.
 */
const MAX_STEPS_PER_USER = 2_000_000
const MAX_STEPS = 50_000_000

/** An event while push rules look at it. What is derived from it is derived once for all rules of all users. */
export class PushedEvent {
  readonly pdu: PushEvent
  readonly #ids: Readonly<Record<string, string | undefined>>
  readonly #texts = new Map<string, FoldedText | undefined>()
  #ofUser = 0
  #ofAll = 0

  /** @param ids the event's room and id, which newer events do not contain themselves */
  constructor(pdu: PushEvent, ids: { readonly roomId?: string; readonly eventId?: string } = {}) {
    this.pdu = pdu
    this.#ids = { room_id: ids.roomId, event_id: ids.eventId }
  }

  /** The value of a property as clients see the event. */
  at(path: PropertyPath): JsonValue | undefined {
    const [first = ''] = path
    if (path.length === 1 && Object.hasOwn(this.#ids, first)) return this.#ids[first] ?? propertyAt(this.pdu, path)
    return propertyAt(this.pdu, path)
  }

  /** The text at a path for {@link TextPattern}s; undefined where there is none. @param key identifies the path */
  text(key: string, path: PropertyPath): FoldedText | undefined {
    if (this.#texts.has(key)) return this.#texts.get(key)
    const value = this.at(path)
    const text = typeof value === 'string' ? new FoldedText(value) : undefined
    this.#texts.set(key, text)
    return text
  }

  /** Starts with the rules of another user. */
  begin(): void {
    this.#ofUser = 0
  }

  /** Takes the steps of a search. False: there are no more. */
  spend(steps: number): boolean {
    if (this.#ofUser + steps > MAX_STEPS_PER_USER || this.#ofAll + steps > MAX_STEPS) return false
    this.#ofUser += steps
    this.#ofAll += steps
    return true
  }
}
