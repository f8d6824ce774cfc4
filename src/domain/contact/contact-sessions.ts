import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { Dialect } from '../../core/paths.ts'
import type { Medium } from '../../core/threepid.ts'
import type { Database } from '../../store/db/db.ts'
import { findSession } from '../../store/identity/sessions.ts'
import type { Clock, Random } from '../clock.ts'
import type { Messenger } from '../identity/messenger.ts'
import type { SendLimits } from '../identity/send-limits.ts'
import { createValidationSessions, type ValidationSessions } from '../identity/sessions.ts'
import { publicBaseUrl } from '../public-address.ts'
import type { DelegatedSessions } from './delegated-sessions.ts'
import { type NamedProof, type ProvenThreepid, PURPOSES, type Purpose } from './proof.ts'

/** The homeserver's own validation sessions. */
export interface ContactSessions {
  of(purpose: Purpose): ValidationSessions
  /** The URL to which a link or a client submits a session's token (`submit_url`). */
  submitUrl(purpose: Purpose, medium: Medium, dialect: Dialect): string
  /**
   * The address that a session proves, for any purpose. @throws as `ValidationSessions.findValidated`, and errors of the identity server
   * that has the session
   */
  findValidated(proof: NamedProof): Promise<ProvenThreepid>
  /** The same for a session whose secret was checked before; undefined while it proves nothing. */
  findKnown(sid: string): Promise<ProvenThreepid | undefined>
}

/** The realm separates sessions of the homeserver from those of the identity service. */
const realmOf = (purpose: Purpose): string => `homeserver ${purpose}`

export function createContactSessions(deps: {
  readonly config: Pick<Config, 'identity' | 'public_base_url' | 'listen'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly messenger: Messenger
  readonly sendLimits: SendLimits
  readonly delegated: Pick<DelegatedSessions, 'find'>
}): ContactSessions {
  const { config, db, clock, delegated } = deps
  const submitUrl: ContactSessions['submitUrl'] = (purpose, medium, dialect) =>
    `${publicBaseUrl(config)}/_${dialect}/client/unstable/hearth/validate/${purpose}/${medium}/submitToken`

  const begin = (purpose: Purpose): ValidationSessions =>
    createValidationSessions({
      ...deps,
      realm: {
        name: realmOf(purpose),
        template: purpose === 'password' ? 'reset-password.mail' : 'validate-email.mail',
        submitUrl: (dialect) => submitUrl(purpose, 'email', dialect),
      },
    })
  const sessions = { register: begin('register'), password: begin('password'), add: begin('add') }
  const purposeOf = (realm: string | undefined) => PURPOSES.find((purpose) => realmOf(purpose) === realm)

  return {
    of: (purpose) => sessions[purpose],
    submitUrl,
    async findValidated(proof) {
      const purpose = purposeOf((await findSession(db, proof.sid))?.realm)
      if (purpose === undefined) {
        const elsewhere = await delegated.find(proof)
        if (elsewhere !== undefined) return elsewhere
        throw new ProtocolError('M_NO_VALID_SESSION', 'There is no session with this id and secret.')
      }
      return { ...(await sessions[purpose].findValidated(proof)), purpose, session: proof.sid }
    },
    async findKnown(sid) {
      const row = await findSession(db, sid)
      const purpose = purposeOf(row?.realm)
      if (row === undefined || purpose === undefined || row.expires_at <= clock.now()) return undefined
      const { medium, address, validated_at: validatedAt } = row
      return validatedAt === null ? undefined : { medium, address, validatedAt, purpose, session: sid }
    },
  }
}
