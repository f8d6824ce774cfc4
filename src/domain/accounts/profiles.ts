import { ProtocolError } from '../../core/errors.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { hasLoneSurrogate, type JsonValue } from '../../core/json.ts'
import { recordProfileChanges } from '../../store/accounts/profile-changes.ts'
import { changeProfile, findProfile, type ProfileChanges, type ProfileFields } from '../../store/accounts/profiles.ts'
import type { Reader } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { MAX_REMOVED_PROFILE_FIELDS } from '../limits/sliding-sync.ts'
import { MAX_AVATAR_URL_CHARS, MAX_DISPLAYNAME_CHARS, MAX_PROFILE_BYTES, MAX_PROFILE_KEY_BYTES } from '../limits.ts'
import { checkText } from '../text.ts'
import { enterLocalUsers } from '../user-directory/local-entries.ts'
import type { AskProfile } from './remote-profiles.ts'
import type { Requester } from './requester.ts'

/** Copies a changed name or avatar into the member events of the user's rooms. */
export interface ProfileListener {
  profileChanged(userId: UserId, profile: ProfileFields): Promise<void>
}

export interface Profiles {
  /** @throws ProtocolError `M_NOT_FOUND` if the user's server does not know the user; 502 if that server does not answer */
  get(userId: UserId): Promise<ProfileFields>
  /** One field; undefined if it is not set. @throws as `get` */
  getField(userId: UserId, name: string): Promise<JsonValue | undefined>
  /** Sets fields; null or undefined removes one. @throws ProtocolError `M_INVALID_PARAM`, `M_KEY_TOO_LARGE`, `M_PROFILE_TOO_LARGE` */
  change(requester: Requester, fields: ProfileChanges): Promise<void>
  /** Sets these fields and removes all others. @throws as `change` */
  replace(requester: Requester, fields: ProfileChanges): Promise<void>
}

/** The fields that member events copy. */
const IN_MEMBER_EVENTS = ['displayname', 'avatar_url']

/** Field names follow the common namespaced identifier grammar (appendices). */
const FIELD_NAME = /^[a-z][a-z0-9_.-]*$/

function checkField(name: string, value: JsonValue): void {
  if (name.length > MAX_PROFILE_KEY_BYTES) {
    throw new ProtocolError('M_KEY_TOO_LARGE', `The name of a profile field may have ${MAX_PROFILE_KEY_BYTES} bytes.`)
  }
  if (!FIELD_NAME.test(name)) {
    throw new ProtocolError('M_INVALID_PARAM', 'A profile field is named in lower-case letters, digits, _ . and -.')
  }
  if (hasLoneSurrogate(value)) {
    throw new ProtocolError('M_INVALID_PARAM', `'${name}' holds half of a character: a lone surrogate.`)
  }
  if (!IN_MEMBER_EVENTS.includes(name)) return
  if (typeof value !== 'string') throw new ProtocolError('M_BAD_JSON', `Key '${name}' must be a string.`)
  checkText(name, value, name === 'displayname' ? MAX_DISPLAYNAME_CHARS : MAX_AVATAR_URL_CHARS)
}

/** The profile after these changes. @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM`, `M_KEY_TOO_LARGE` */
function applied(before: ProfileFields, fields: ProfileChanges): ProfileFields {
  const after = new Map(Object.entries(before))
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) {
      after.delete(name)
      continue
    }
    checkField(name, value)
    after.set(name, value)
  }
  return Object.fromEntries(after)
}

export interface ProfileReaderParts {
  readonly serverName: ServerName
  readonly db: Reader
  readonly askProfile: AskProfile
  /** Asks the application services whether one has just made a local user. */
  askService(userId: UserId): Promise<boolean>
}

/** What only reads profiles. */
export function createProfileReader(parts: ProfileReaderParts): Pick<Profiles, 'get' | 'getField'> {
  const { serverName, db, askProfile, askService } = parts

  async function get(userId: UserId): Promise<ProfileFields> {
    if (serverOf(userId) !== serverName) return askProfile(userId)
    const here = await findProfile(db, userId)
    const profile = here ?? ((await askService(userId)) ? await findProfile(db, userId) : undefined)
    if (profile === undefined) throw new ProtocolError('M_NOT_FOUND', 'This server has no such user.')
    return profile
  }

  return {
    get,
    async getField(userId, name) {
      const profile = await get(userId)
      return Object.hasOwn(profile, name) ? profile[name] : undefined
    },
  }
}

interface ProfileParts extends ProfileReaderParts {
  readonly ledger: Ledger
  /** Tells syncs. */
  readonly news: { changed(userNid: number, position: number): void }
  readonly listener: ProfileListener
}

export function createProfiles(deps: ProfileParts): Profiles {
  const { ledger, news, listener } = deps
  const { get, getField } = createProfileReader(deps)

  async function change({ userId, userNid }: Requester, fields: ProfileChanges): Promise<void> {
    const before = await get(userId)
    const after = applied(before, fields)
    if (Buffer.byteLength(JSON.stringify(after)) > MAX_PROFILE_BYTES) {
      throw new ProtocolError('M_PROFILE_TOO_LARGE', `A profile may have at most ${MAX_PROFILE_BYTES} bytes.`)
    }
    const isShown = IN_MEMBER_EVENTS.some((name) => before[name] !== after[name])
    const names = Object.keys(fields).filter((name) => Object.hasOwn(before, name) || Object.hasOwn(after, name))
    await ledger.append(
      async (tx, position) => {
        await changeProfile(tx, userNid, fields)
        await recordProfileChanges(tx, { userNid, names, position }, MAX_REMOVED_PROFILE_FIELDS)
        if (isShown) await enterLocalUsers(tx, [userNid])
      },
      (_, position) => news.changed(userNid, position),
    )
    if (isShown) await listener.profileChanged(userId, after)
  }

  return {
    get,
    getField,
    change,
    async replace(requester, fields) {
      const removed = Object.keys(await get(requester.userId)).map((name) => [name, undefined])
      await change(requester, { ...Object.fromEntries(removed), ...fields })
    },
  }
}
