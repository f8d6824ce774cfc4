import { readdirSync, readFileSync } from 'node:fs'
import { type EventReference, type Pdu, referencedId } from '../../src/core/event/format.ts'
import { redact } from '../../src/core/event/redact.ts'
import type { RoomId } from '../../src/core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../src/core/json.ts'
import { readExact } from '../../src/core/large-integers.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import { contentHash } from '../../src/core/signing/event-hash.ts'
import { addSignature, signedText } from '../../src/core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'

export const CREATOR = '@creator:alpha.test'
export const MEMBER = '@member:beta.test'
/** Joined once, banned since. */
export const FORMER = '@former:beta.test'

/** What the creator's third-party invite says. No case has its key. */
export const THIRD_PARTY_INVITE: JsonObject = {
  display_name: 'somebody',
  key_validity_url: 'https://identity.test/_matrix/identity/v2/pubkey/isvalid',
  public_key: '6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw',
}

/**
 * A room for malformed events: made by {@link CREATOR}, who has level 100 (or is a creator of version 12), with join rule `invite`,
 * levels 50 for state (`x.open` alone takes 0), inviting, kicking, banning and redacting, 0 for messages. {@link MEMBER} joined by invitation, then
 * {@link FORMER}, whom the creator banned. At last the creator made a {@link THIRD_PARTY_INVITE} under the token `token`, and another
 * room of the same version. The forged events come from beta.test.
 */
export interface MalformedFixture {
  readonly version: RoomVersion
  readonly roomId: RoomId
  readonly references: {
    readonly create: EventReference
    /** The creator's join. */
    readonly creator: EventReference
    readonly levels: EventReference
    readonly joinRules: EventReference
    readonly member: EventReference
    /** The former member's join, with which the timeline ended before the ban. */
    readonly former: EventReference
    readonly ban: EventReference
    /** The third-party invite. */
    readonly invitation: EventReference
    /** The create event and the power levels of the other room. */
    readonly otherCreate: EventReference
    readonly otherLevels: EventReference
  }
  readonly latest: readonly EventReference[]
  /** Of the latest events. */
  readonly depth: number
  /** Milliseconds, not before any event of the room. */
  readonly ts: number
  /** Keys of beta.test, and of gamma.test, which has no member in the room. Both are published, for less than 30 days ahead. */
  readonly beta: SigningKey
  readonly gamma: SigningKey
  /** Part of the ids that forged events have in versions 1 and 2: one server may know several such rooms. */
  readonly label: string
}

/** What must become of an event: it is not taken in; it is kept as rejected; it is soft-failed; its redacted copy is accepted. */
export type Fate = 'dropped' | 'rejected' | 'soft-failed' | 'redacted'

/** Whether a server did with an event what it must. One that is refused may be kept as rejected, or not at all. */
export function isExpected({ expected }: MalformedCase, fate: string): boolean {
  const isRefused = (each: string) => each === 'dropped' || each === 'rejected'
  return fate === expected || (isRefused(fate) && isRefused(expected))
}

interface Patch {
  /** Values by path, its steps separated by `/`. */
  readonly set?: { readonly [path: string]: JsonValue }
  readonly remove?: readonly string[]
}

interface Signer {
  readonly server: string
  readonly key: 'beta' | 'gamma' | 'stranger'
  /** The key's own where nothing is said. */
  readonly keyId?: string
}

export interface MalformedCase extends Patch {
  readonly kind: string
  readonly name: string
  /** `6-12` */
  readonly versions: string
  readonly expected: Fate
  /** The whole text instead of a patched event. */
  readonly raw?: string
  readonly base?: 'message' | 'profile'
  /** Steps left out once the event is patched: it is hashed, then signed by beta.test. */
  readonly skip?: readonly ('hash' | 'sign')[]
  readonly signers?: readonly Signer[]
  /** Changed when it is hashed and signed. */
  readonly after?: Patch
  /** Replaced in the final text. */
  readonly edit?: readonly [find: string, replacement: string]
  /** Further events that the forging server would hand out when asked for what this one cites. */
  readonly companions?: readonly MalformedCase[]
}

const FOLDER = new URL('../vectors/malformed/', import.meta.url)

/** All cases, their kind being the name of their file. */
export function malformedCases(): MalformedCase[] {
  return readdirSync(FOLDER)
    .sort()
    .flatMap((file) => {
      const cases = JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Omit<MalformedCase, 'kind'>[]
      return cases.map((each) => ({ kind: file.replace('.json', ''), ...each }))
    })
}

/** The event as its sender would put it on the wire. */
export function materialise(malformed: MalformedCase, fixture: MalformedFixture): string {
  if (malformed.raw !== undefined) return malformed.raw
  const drawn = patched(template(malformed, fixture), malformed, fixture) as JsonObject
  const plain = (value: JsonValue) => withoutMarks(value) as JsonObject
  if (!malformed.skip?.includes('hash')) {
    drawn.hashes ??= {}
    if (isObject(drawn.hashes)) drawn.hashes.sha256 = contentHash(plain(drawn))
  }
  if (!malformed.skip?.includes('sign')) sign(drawn, plain(drawn), malformed, fixture)
  const final = patched(drawn, malformed.after ?? {}, fixture)
  const text = markedText(final)
  const [find, replacement] = malformed.edit ?? ['', '']
  if (!text.includes(find)) throw new Error(`${malformed.name}: nothing to edit`)
  return find === '' ? text : text.replace(find, () => replacement)
}

/** The texts of what the sender would hand out when asked. */
export function companionsOf(malformed: MalformedCase, fixture: MalformedFixture): string[] {
  return (malformed.companions ?? []).map((companion) => materialise({ ...companion, kind: malformed.kind }, fixture))
}

const STRANGER = signingKeyFromSeed('ed25519:stranger', Buffer.alloc(32, 99))

/** A valid event of the member, but for what the case changes. */
function template({ base = 'message', name }: MalformedCase, fixture: MalformedFixture): JsonObject {
  const { version, depth, ts } = fixture
  const isProfile = base === 'profile'
  const auth = ['{create}', '{levels}', '{member}', ...(isProfile ? ['{joinRules}'] : [])]
  return resolved(
    {
      room_id: '{room}',
      sender: MEMBER,
      origin_server_ts: ts,
      depth: depth + 1,
      prev_events: ['{latest}'],
      auth_events: auth,
      hashes: {},
      signatures: {},
      ...(isProfile
        ? { type: 'm.room.member', state_key: MEMBER, content: { membership: 'join', displayname: name } }
        : { type: 'm.room.message', content: { msgtype: 'm.text', body: name } }),
      ...(version.eventsNameOrigin ? { origin: 'beta.test' } : {}),
      ...(version.eventIdFormat === 'opaque' ? { event_id: `$${fixture.label}${slug(name)}:beta.test` } : {}),
    },
    fixture,
  ) as JsonObject
}

function slug(name: string): string {
  return Buffer.from(name).toString('base64url').slice(0, 100)
}

function patched(object: JsonObject, { set = {}, remove = [] }: Patch, fixture: MalformedFixture): JsonObject {
  const copy = structuredClone(object)
  const holderOf = (path: string): [JsonObject, string] => {
    const steps = path.split('/').map((step) => step.replace('{keyId}', fixture.beta.keyId))
    const last = steps.pop()!
    return [steps.reduce((at, step) => at[step] as JsonObject, copy), last]
  }
  for (const [path, value] of Object.entries(set)) {
    const [holder, key] = holderOf(path)
    Object.defineProperty(holder, key, {
      value: resolved(value, fixture),
      enumerable: true,
      writable: true,
      configurable: true,
    })
  }
  for (const path of remove) {
    const [holder, key] = holderOf(path)
    delete holder[key]
  }
  return copy
}

/** Fills in what depends on the room: `{room}`, `{create}` and other references, `{create.id}`, `{latest}`, `{keyId}`; and what is too long for a file. */
function resolved(value: JsonValue, fixture: MalformedFixture): JsonValue {
  if (typeof value === 'string') return (namedValue(value, fixture) ?? value) as JsonValue
  if (Array.isArray(value)) return value.flatMap((each) => resolvedEntry(each, fixture))
  if (!isObject(value)) return value
  const { $repeat, $references, $later, times } = value
  if (typeof $repeat === 'string') return $repeat.repeat(times as number)
  if (typeof $later === 'number') return fixture.ts + $later
  if (typeof $references === 'number') {
    return Array.from({ length: $references }, (_, place) => reference(fixture, `${place}`)) as JsonValue
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolved(each, fixture)]))
}

function resolvedEntry(value: JsonValue, fixture: MalformedFixture): JsonValue[] {
  if (value === '{latest}') return fixture.latest as unknown as JsonValue[]
  if (value === '{create}' && !fixture.version.createIsAuthEvent) return []
  const one = resolved(value === '{create!}' ? '{create}' : value, fixture)
  return [one]
}

function namedValue(text: string, fixture: MalformedFixture): JsonValue | undefined {
  const name = /^\{([a-zA-Z]+)(\.id)?(?::(.+))?\}$/.exec(text)
  if (name === null) return undefined
  const [, word, id, rest] = name
  if (word === 'room') return fixture.roomId
  if (word === 'keyId') return fixture.beta.keyId
  if (word === 'unknown') return reference(fixture, rest ?? '') as JsonValue
  if (word === 'event') return reference(fixture, '', rest) as JsonValue
  const known = (fixture.references as { readonly [name: string]: EventReference | undefined })[word!]
  return known === undefined ? undefined : ((id === undefined ? known : referencedId(known)) as JsonValue)
}

/** A reference, in the shape of the version, to an event that does not exist, or to the case of that name. */
function reference({ version, label }: MalformedFixture, text: string, ofCase?: string): EventReference {
  const hash = Buffer.alloc(32, `nothing ${text}`)
  if (!version.referencesCarryHashes) {
    return `$${hash.toString(version.eventIdFormat === 'base64' ? 'base64' : 'base64url').slice(0, 43)}` as EventReference
  }
  const name = ofCase === undefined ? `nothing${text}` : `${label}${slug(ofCase)}`
  return [`$${name}:beta.test`, { sha256: hash.toString('base64').slice(0, 43) }] as EventReference
}

function sign(
  event: JsonObject,
  plain: JsonObject,
  { signers = DEFAULT_SIGNERS }: MalformedCase,
  fixture: MalformedFixture,
) {
  const isWhole = isObject(plain.content) && typeof plain.type === 'string'
  const text = signedText(isWhole ? redact(fixture.version, plain as Pdu) : plain)
  for (const { server, key, keyId } of signers) {
    const signing = key === 'stranger' ? STRANGER : fixture[key]
    if (event.signatures === undefined || isObject(event.signatures)) {
      event.signatures = addSignature(
        event,
        server,
        resolved(keyId ?? signing.keyId, fixture) as string,
        signing.sign(text),
      )
    }
  }
}

const DEFAULT_SIGNERS: readonly Signer[] = [{ server: 'beta.test', key: 'beta' }]

// Marks stand for what a parsed value cannot hold: how a number is written, and nesting too deep to build.

/** What the signer made of marks: the number itself, no nesting. */
function withoutMarks(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutMarks)
  if (!isObject(value)) return value
  if (typeof value.$number === 'string') return readExact(value.$number)
  if (typeof value.$nest === 'number') return []
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutMarks(each)]))
}

function markedText(value: JsonValue): string {
  const text = JSON.stringify(value, (_, each: JsonValue) => {
    if (!isObject(each)) return each
    if (typeof each.$number === 'string') return `@number ${each.$number}@`
    if (typeof each.$nest !== 'number') return each
    return `@nest ${each.$nest}@`
  })
  return text
    .replaceAll(/"@number ([^@]*)@"/g, '$1')
    .replaceAll(/"@nest ([0-9]+)@"/g, (_, depth: string) => '['.repeat(Number(depth)) + ']'.repeat(Number(depth)))
}
