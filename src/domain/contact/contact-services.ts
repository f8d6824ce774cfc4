import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { forgetProofs } from '../../store/accounts/contact-proofs.ts'
import { forgetDelegatedSessions } from '../../store/accounts/delegated-sessions.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import type { Messenger } from '../identity/messenger.ts'
import { createSendLimits } from '../identity/send-limits.ts'
import { type ContactProofs, createContactProofs } from './contact-proofs.ts'
import { type ContactSessions, createContactSessions } from './contact-sessions.ts'
import { type Contacts, createContacts } from './contacts.ts'
import { createDelegatedSessions } from './delegated-sessions.ts'
import type { IdentityServers } from './identity-servers.ts'
import { createTokenRequests, type TokenRequests } from './token-requests.ts'

/** The services for addresses of accounts, as endpoints call them. */
export interface ContactServices {
  readonly contacts: Contacts
  readonly contactSessions: ContactSessions
  readonly contactTokens: TokenRequests
  /** The identity servers that users may name, including this one's. */
  readonly identityServers: IdentityServers
}

/** Wires the services for addresses, and makes the stages of interactive authentication that prove one. */
export function createContactServices(deps: {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly messenger: Messenger
  readonly identityServers: IdentityServers
  readonly log: Logger
}): { readonly services: ContactServices; readonly stages: ContactProofs['stages'] } {
  const { config, db, clock, random, messenger, identityServers, log } = deps
  const sendLimits = createSendLimits({ config, db, clock })
  const delegated = createDelegatedSessions({ config, db, clock, random, identityServers })
  const sessions = createContactSessions({ config, db, clock, random, messenger, sendLimits, delegated })
  const proofs = createContactProofs({ db, clock, sessions })
  return {
    services: {
      contacts: createContacts({ db, clock, random, proofs, identityServers, log }),
      contactSessions: sessions,
      contactTokens: createTokenRequests({ config, db, sessions, sendLimits, delegated, identityServers }),
      identityServers,
    },
    stages: proofs.stages,
  }
}

/** Deletes the record of used sessions once no session of that time can be valid any more. */
export function contactChore(config: Pick<Config, 'identity'>) {
  // A session may be validated at the end of its first lifetime and used at the end of the second.
  const keptMs = 2 * config.identity.sessions.lifetime_hours * 3_600_000
  return async (tx: Tx, now: number, atMost: number): Promise<number> =>
    (await forgetProofs(tx, now - keptMs, atMost)) + (await forgetDelegatedSessions(tx, now, atMost))
}
