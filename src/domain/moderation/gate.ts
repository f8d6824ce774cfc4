import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createBoundedMap } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Bans, PolicyEntity } from '../../core/event/policy-rules.ts'
import { compileGlobs, type TextMatcher } from '../../core/glob.ts'
import { localpartOf, type RoomId, type ServerName, serverOf, splitServerName, type UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import { MAX_SERVER_VERDICTS } from '../limits/moderation.ts'
import type { Antispam } from './antispam.ts'
import type { PolicyLists } from './policy-lists.ts'

/** What is known of somebody who gets an account. */
export interface Newcomer {
  /** A confirmed email address. */
  readonly email?: { readonly address: string; readonly validatedAt: number } | undefined
  /** Where the request came from; unknown of people whom a provider brings. */
  readonly from?: { readonly ip: string; readonly userAgent?: string | undefined } | undefined
  /** The service that vouches for them. */
  readonly provider?: string | undefined
}

/** An invitation to somebody whose user id is not known yet. */
export interface AddressInvitation {
  readonly medium: string
  readonly address: string
}

/**
 * What people may do here besides what the rules of rooms say: policy lists, options, and the operator's antispam service. Administrators
 * of this server may do everything. Functions resolve at once where nothing is configured; they throw `M_FORBIDDEN` with the reason.
 */
export interface Gate {
  /** @param isInvited asked only if the service is asked */
  join(userId: UserId, roomId: RoomId, isInvited: () => Promise<boolean>): Promise<void>
  /** A user of another server joins or knocks through this one. @param isAsked whether the service is asked too */
  remoteJoin(userId: UserId, roomId: RoomId, isAsked: boolean): Promise<void>
  invite(sender: UserId, target: UserId, roomId: RoomId): Promise<void>
  /** @param roomId undefined while a room is made */
  inviteByAddress(sender: UserId, invited: readonly AddressInvitation[], roomId: RoomId | undefined): Promise<void>
  remoteInvite(sender: UserId, target: UserId, roomId: RoomId, event: JsonObject): Promise<void>
  createRoom(userId: UserId): Promise<void>
  createAlias(userId: UserId, alias: string): Promise<void>
  /** Whether a name may be registered. @throws ProtocolError `M_EXCLUSIVE` for a forbidden one */
  name(userId: UserId): void
  /** An account is about to be made. @throws as `name` */
  register(userId: UserId, newcomer: Newcomer): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND` for files of a banned server */
  media(server: ServerName): void
  /** Why events of a server are not received; undefined, at no cost while there is no list, if they are. */
  shuns(server: ServerName): string | undefined
  /** Whether each event is asked about. */
  readonly judgesEvents: boolean
  event(userId: UserId, event: JsonObject): Promise<void>
}

export function createGate(parts: {
  readonly config: Pick<Config, 'server_name' | 'moderation'>
  readonly db: Database
  readonly log: Logger
  readonly lists: Pick<PolicyLists, 'bans'>
  readonly antispam: Antispam
}): Gate {
  const { config, db, log, lists, antispam } = parts
  const { moderation, server_name: own } = config
  const isBlocked = matcherOf(moderation.block_invites_from)
  const isForbidden = matcherOf(moderation.forbidden_names)

  async function isAdministrator(userId: UserId): Promise<boolean> {
    return serverOf(userId) === own && (await findAccount(db, userId))?.is_admin === true
  }

  /** Why the lists ban one of these; undefined if none does. */
  function banOf(...those: readonly (readonly [PolicyEntity, string])[]): string | undefined {
    const bans = lists.bans()
    if (bans === undefined) return undefined
    for (const [entity, text] of those) {
      if (entity === 'server' && text === own) continue
      const rule = bans.of(entity, text)
      if (rule) return `This server has nothing to do with ${text}${rule.reason === '' ? '' : `: ${rule.reason}`}.`
    }
    return undefined
  }

  const shuns = createServerVerdicts(own, lists, (server) => banOf(['server', server]))
  const ofUser = (userId: UserId) => [['user', userId] as const, ['server', serverOf(userId)] as const] as const

  /** Nobody is told which rule it was that an administrator may break. */
  async function refuse(by: UserId, reason: string | undefined, fields: JsonObject): Promise<void> {
    if (reason === undefined || (await isAdministrator(by))) return
    log.info({ ...fields, reason }, 'what somebody wanted to do was refused')
    throw new ProtocolError('M_FORBIDDEN', reason)
  }

  async function ask(by: UserId, question: Parameters<Antispam['ask']>[0], body: JsonObject): Promise<void> {
    if (!antispam.asks(question) || (await isAdministrator(by))) return
    await antispam.ask(question, body)
  }

  async function mayInvite(sender: UserId, target: UserId | undefined, room: RoomId | undefined): Promise<void> {
    const blocked = isBlocked && namesOf(sender).some(isBlocked)
    const others = [...(room === undefined ? [] : [['room', room] as const]), ...(target ? ofUser(target) : [])]
    const reason = blocked ? `Invitations from ${sender} are not accepted here.` : banOf(...ofUser(sender), ...others)
    await refuse(sender, reason, { sender, target: target ?? null, room: room ?? null })
  }

  function name(userId: UserId): void {
    if (isForbidden?.(localpartOf(userId))) throw new ProtocolError('M_EXCLUSIVE', 'This name cannot be registered.')
    if (banOf(['user', userId]) === undefined) return
    throw new ProtocolError('M_FORBIDDEN', 'This name is banned by this server.')
  }

  const onlyFor = async (who: 'everybody' | 'administrators', by: UserId, what: string) => {
    if (who === 'everybody') return
    await refuse(by, `Only administrators of this server may ${what}.`, { by })
  }

  return {
    async join(user, room, isInvited) {
      await refuse(user, banOf(['room', room], ...ofUser(user)), { user, room })
      if (!antispam.asks('user_may_join_room')) return
      await ask(user, 'user_may_join_room', { user, room, is_invited: await isInvited() })
    },
    async remoteJoin(user, room, isAsked) {
      await refuse(user, banOf(...ofUser(user), ['room', room]), { user, room })
      if (isAsked) await ask(user, 'accept_make_join', { user, room })
    },
    async invite(inviter, invitee, room_id) {
      await mayInvite(inviter, invitee, room_id)
      await ask(inviter, 'user_may_invite', { inviter, invitee, room_id })
    },
    async inviteByAddress(inviter, invited, roomId) {
      await mayInvite(inviter, undefined, roomId)
      for (const { medium, address } of invited) {
        await ask(inviter, 'user_may_send_3pid_invite', { inviter, medium, address, room_id: roomId ?? '' })
      }
    },
    async remoteInvite(sender, target, roomId, event) {
      await mayInvite(sender, target, roomId)
      await ask(sender, 'federated_user_may_invite', { event })
    },
    async createRoom(user_id) {
      await onlyFor(moderation.create_rooms, user_id, 'make rooms')
      await ask(user_id, 'user_may_create_room', { user_id })
    },
    async createAlias(user_id, room_alias) {
      await onlyFor(moderation.create_aliases, user_id, 'give rooms addresses')
      await ask(user_id, 'user_may_create_room_alias', { user_id, room_alias })
    },
    name,
    async register(user_id, { email, from, provider }) {
      name(user_id)
      if (!antispam.asks('check_registration_for_spam')) return
      await antispam.ask('check_registration_for_spam', {
        user_id,
        username: localpartOf(user_id),
        email_threepid: email ? { medium: 'email', address: email.address, validated_at: email.validatedAt } : null,
        request_info: from ? [[from.userAgent ?? '', from.ip]] : [],
        auth_provider_id: provider ?? null,
      })
    },
    media(server) {
      if (shuns(server) !== undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such media.')
    },
    shuns,
    get judgesEvents() {
      return antispam.asks('check_event_for_spam')
    },
    event: (userId, event) => ask(userId, 'check_event_for_spam', { event }),
  }
}

/** Verdicts on servers, kept while the same rules are in force: there are few servers and many events. */
function createServerVerdicts(
  own: ServerName,
  lists: Pick<PolicyLists, 'bans'>,
  judge: (server: ServerName) => string | undefined,
): Gate['shuns'] {
  let verdicts = createBoundedMap<ServerName, { readonly reason: string | undefined }>(MAX_SERVER_VERDICTS)
  let judgedBy: Bans | undefined
  return (server) => {
    const bans = lists.bans()
    if (bans === undefined || server === own) return undefined
    if (bans !== judgedBy) {
      verdicts = createBoundedMap(MAX_SERVER_VERDICTS)
      judgedBy = bans
    }
    const known = verdicts.get(server)
    if (known) return known.reason
    const reason = judge(server)
    verdicts.set(server, { reason })
    return reason
  }
}

/** What a pattern for users or servers may be about: a server is the same on all its ports. */
function namesOf(userId: UserId): readonly string[] {
  const server = serverOf(userId)
  return [userId, server, splitServerName(server)?.host ?? server]
}

function matcherOf(globs: readonly string[]): TextMatcher | undefined {
  return globs.length === 0 ? undefined : compileGlobs(globs)
}

const nothing = async (): Promise<void> => {}

/** A gate that lets everybody do everything. */
export const OPEN_GATE: Gate = {
  join: nothing,
  remoteJoin: nothing,
  invite: nothing,
  inviteByAddress: nothing,
  remoteInvite: nothing,
  createRoom: nothing,
  createAlias: nothing,
  name: () => {},
  register: nothing,
  media: () => {},
  shuns: () => undefined,
  judgesEvents: false,
  event: nothing,
}
