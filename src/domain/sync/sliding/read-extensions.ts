import { ProtocolError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import {
  MAX_EXTENSION_ROOMS,
  MAX_PROFILE_FIELDS_ASKED,
  MAX_THREAD_SUBSCRIPTIONS_SENT,
  MAX_TO_DEVICE_SENT,
} from '../../limits/sliding-sync.ts'
import { MAX_STICKY_SENT } from '../../limits/sticky-events.ts'
import type { EventPosition } from '../token.ts'
import type { Extension, RoomExtension, SlidingExtensions } from './request.ts'

/** The keys of the extensions: that of the accepted text, those of its proposal, and those of clients in use. */
const NAMES = {
  toDevice: ['to_device', 'org.matrix.msc4538.to_device'],
  e2ee: ['e2ee', 'org.matrix.msc4543.e2ee'],
  accountData: ['account_data', 'org.matrix.msc4548.account_data'],
  receipts: ['receipts', 'org.matrix.msc4551.receipts'],
  typing: ['typing', 'org.matrix.msc4508.typing'],
  threadSubscriptions: [
    'thread_subscriptions',
    'org.matrix.msc4308.thread_subscriptions',
    'io.element.msc4308.thread_subscriptions',
  ],
  stickyEvents: ['org.matrix.msc4354.sticky_events'],
  presence: ['presence'],
  profiles: ['profiles', 'org.matrix.msc4262.profiles'],
} as const satisfies Record<keyof SlidingExtensions, readonly string[]>

/**
 * Reads the extensions that are enabled. Unknown ones are left out, as the proposal wants (MSC4508).
 *
 * @returns also a text that is the same for the same extensions, whatever messages to the device were received
 */
export function readExtensions(body: Readonly<Record<string, JsonObject>>): {
  readonly extensions: SlidingExtensions
  readonly text: string
} {
  const named = (kind: keyof SlidingExtensions) => enabledOf(body, NAMES[kind])
  const scoped = (kind: keyof SlidingExtensions) => {
    const found = named(kind)
    return found && scopeOf(found)
  }
  const toDevice = named('toDevice')
  const threads = named('threadSubscriptions')
  const sticky = named('stickyEvents')
  const profiles = named('profiles')
  const extensions: SlidingExtensions = {
    toDevice: toDevice && {
      ...nameOf(toDevice),
      limit: limitOf(toDevice, MAX_TO_DEVICE_SENT),
      since: sinceOf(toDevice),
    },
    e2ee: nameOf(named('e2ee')),
    accountData: scoped('accountData'),
    receipts: scoped('receipts'),
    typing: scoped('typing'),
    threadSubscriptions: threads && { ...nameOf(threads), limit: limitOf(threads, MAX_THREAD_SUBSCRIPTIONS_SENT) },
    stickyEvents: sticky && {
      ...nameOf(sticky),
      limit: limitOf(sticky, MAX_STICKY_SENT),
      since: positionOf(sticky),
    },
    presence: nameOf(named('presence')),
    profiles: profiles && { ...scopeOf(profiles), fields: fieldsOf(profiles) },
  }
  const text = JSON.stringify(extensions, (key, value) => (key === 'since' ? undefined : value))
  return { extensions, text }
}

interface Enabled {
  readonly name: string
  readonly config: JsonObject
}

function enabledOf(body: Readonly<Record<string, JsonObject>>, names: readonly string[]): Enabled | undefined {
  for (const name of names) {
    const config = Object.hasOwn(body, name) ? body[name] : undefined
    if (config === undefined) continue
    const { enabled = false } = config
    if (typeof enabled !== 'boolean') throw refused(name, '`enabled` is true or false')
    if (enabled) return { name, config }
  }
  return undefined
}

function nameOf(enabled: Enabled): Extension
function nameOf(enabled: Enabled | undefined): Extension | undefined
function nameOf(enabled: Enabled | undefined): Extension | undefined {
  return enabled && { name: enabled.name }
}

function scopeOf({ name, config }: Enabled): RoomExtension {
  return { name, lists: textsOf(name, 'lists', config.lists), rooms: textsOf(name, 'rooms', config.rooms) }
}

/** Undefined for all. Clients of the earlier text write `*` for that. */
function textsOf(name: string, key: string, value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined
  const isList = Array.isArray(value) && value.every((one) => typeof one === 'string')
  if (!isList) throw refused(name, `\`${key}\` is a list of texts`)
  if (value.length > MAX_EXTENSION_ROOMS) throw refused(name, `\`${key}\` has at most ${MAX_EXTENSION_ROOMS} entries`)
  return value.includes('*') ? undefined : value
}

/** Undefined for all. */
function fieldsOf({ name, config: { fields } }: Enabled): readonly string[] | undefined {
  if (fields === undefined || fields === null) return undefined
  const isList = Array.isArray(fields) && fields.every((field) => typeof field === 'string')
  if (!isList) throw refused(name, '`fields` is a list of texts')
  if (fields.length <= MAX_PROFILE_FIELDS_ASKED) return [...new Set(fields)].sort()
  throw refused(name, `\`fields\` has at most ${MAX_PROFILE_FIELDS_ASKED} entries`)
}

function limitOf({ name, config: { limit } }: Enabled, most: number): number {
  if (limit === undefined || limit === null) return most
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1) throw refused(name, '`limit` is 1 or more')
  return Math.min(limit, most)
}

/** A position in the stream of messages to the device. */
function sinceOf({ name, config: { since } }: Enabled): number | undefined {
  if (since === undefined || since === null) return undefined
  if (typeof since !== 'string' || !/^\d{1,15}$/.test(since))
    throw refused(name, '`since` is a `next_batch` of this extension')
  return Number(since)
}

/** A position in the stream of events. */
function positionOf({ name, config: { since } }: Enabled): EventPosition | undefined {
  if (since === undefined || since === null) return undefined
  if (typeof since !== 'string' || !/^\d{1,16}(?:\.\d{1,16}){0,15}$/.test(since))
    throw refused(name, '`since` is a `next_batch` of this extension')
  return since.split('.').map(Number)
}

function refused(name: string, what: string): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', `In the extension '${name}', ${what}.`)
}
