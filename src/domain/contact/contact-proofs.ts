import { hash } from 'node:crypto'
import { type Errcode, ProtocolError } from '../../core/errors.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { isMedium, type Medium } from '../../core/threepid.ts'
import { findShownSessions, showProof, useProof } from '../../store/accounts/contact-proofs.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { UiaStage } from '../accounts/interactive-auth.ts'
import type { UiaProof } from '../accounts/uia-flows.ts'
import type { Clock } from '../clock.ts'
import type { SessionProof } from '../identity/session-proofs.ts'
import type { ContactSessions } from './contact-sessions.ts'
import { type NamedProof, type ProvenThreepid, PURPOSES, type Purpose } from './proof.ts'

/** The stages of interactive authentication that prove an address. */
export const CONTACT_STAGES = { email: 'm.login.email.identity', msisdn: 'm.login.msisdn' } as const

/** Uses validated sessions as proofs, each of them once. */
export interface ContactProofs {
  /** `m.login.email.identity` and `m.login.msisdn`. Clients send `threepid_creds`, and may poll after that. */
  readonly stages: Readonly<Record<Medium, UiaStage>>
  /** The address that a session proves. It does not use the session up. @throws ProtocolError `M_THREEPID_AUTH_FAILED` */
  find(proof: SessionProof): Promise<ProvenThreepid>
  /** Uses a session up, by `ProvenThreepid.session`. False if it was used before. */
  use(tx: Tx, session: string, purpose: string): Promise<boolean>
}

const OPAQUE = /^[0-9a-zA-Z.=_-]{1,255}$/
const keyOf = (sid: string): Buffer => hash('sha256', `\0${sid}`, 'buffer')
const digest = (text: string): Buffer => hash('sha256', text, 'buffer')

function authFailed(message: string): ProtocolError {
  return new ProtocolError('M_THREEPID_AUTH_FAILED', message)
}

const REASONS: Partial<Record<Errcode, string>> = {
  M_NO_VALID_SESSION: 'There is no session with this id and secret.',
  M_SESSION_EXPIRED: 'This session has expired. Begin a new one.',
  M_SESSION_NOT_VALIDATED: 'The address has not been confirmed yet.',
}

function readCreds(auth: JsonObject): NamedProof {
  // Before release r0.4 of the API clients wrote it the second way.
  const creds = auth.threepid_creds ?? auth.threepidCreds
  if (!isObject(creds)) throw new ProtocolError('M_MISSING_PARAM', "Key 'threepid_creds' is missing.")
  const { sid, client_secret: clientSecret } = creds
  if (typeof sid !== 'string' || typeof clientSecret !== 'string') {
    throw new ProtocolError('M_MISSING_PARAM', "'threepid_creds' needs the keys 'sid' and 'client_secret'.")
  }
  if (!OPAQUE.test(sid) || !OPAQUE.test(clientSecret)) {
    throw new ProtocolError('M_INVALID_PARAM', "The keys 'sid' and 'client_secret' are 1 to 255 of 0-9a-zA-Z.=_-")
  }
  const { id_server: idServer, id_access_token: accessToken } = creds
  const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
  return {
    ...{ sid, clientSecret },
    idServer: isText(idServer) ? idServer : undefined,
    accessToken: isText(accessToken) ? accessToken : undefined,
  }
}

function provenBy({ medium, address, validatedAt, purpose }: ProvenThreepid): JsonObject {
  return { medium, address, validated_at: validatedAt, purpose }
}

export type ShownThreepid = Omit<ProvenThreepid, 'session'>

/** The addresses that interactive authentication has proven for this purpose. */
export function threepidsIn(proof: UiaProof, purpose: Purpose): ShownThreepid[] {
  return Object.values(CONTACT_STAGES).flatMap((stage) => {
    const { medium, address, validated_at: validatedAt, purpose: shownFor } = proof[stage] ?? {}
    if (!isMedium(medium) || typeof address !== 'string' || typeof validatedAt !== 'number') return []
    if (!PURPOSES.some((each) => each === shownFor) || shownFor !== purpose) {
      throw authFailed('This session was begun for another purpose. Ask for a token where it is needed.')
    }
    return [{ medium, address, validatedAt, purpose }]
  })
}

export function createContactProofs(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly sessions: ContactSessions
}): ContactProofs {
  const { db, clock, sessions } = deps
  const row = (sid: string, shownTo: Buffer) => ({ key: keyOf(sid), sid, shownTo, now: clock.now() })

  async function find(proof: NamedProof): Promise<ProvenThreepid> {
    try {
      return await sessions.findValidated(proof)
    } catch (error) {
      const reason = error instanceof ProtocolError ? REASONS[error.errcode] : undefined
      throw reason === undefined ? error : authFailed(reason)
    }
  }

  /** Stores the first proof, so that the client may poll with the session of the authentication alone. */
  async function findFor(proof: NamedProof, shownTo: Buffer): Promise<ProvenThreepid> {
    try {
      return await sessions.findValidated(proof)
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.errcode !== 'M_SESSION_NOT_VALIDATED') return find(proof)
      await db.tx((tx) => showProof(tx, row(proof.sid, shownTo)))
      throw new ProtocolError('M_UNAUTHORIZED', 'The address has not been confirmed yet.')
    }
  }

  function stageOf(medium: Medium): UiaStage {
    const settle = async (shownTo: Buffer, found: ProvenThreepid): Promise<JsonObject> => {
      if (found.medium !== medium) throw authFailed(`This session is not about ${medium}.`)
      if (!(await db.tx((tx) => useProof(tx, row(found.session, shownTo)))))
        throw authFailed('This session has been used before.')
      return provenBy(found)
    }
    return {
      async prove(auth, { session }) {
        const proof = readCreds(auth)
        const shownTo = digest(`uia ${session}`)
        return settle(shownTo, await findFor(proof, shownTo))
      },
      async poll({ session }) {
        const shownTo = digest(`uia ${session}`)
        for (const sid of await findShownSessions(db, shownTo)) {
          const found = await sessions.findKnown(sid)
          if (found?.medium === medium) return settle(shownTo, found)
        }
        return undefined
      },
    }
  }

  return {
    stages: { email: stageOf('email'), msisdn: stageOf('msisdn') },
    find,
    use: (tx, session, purpose) => useProof(tx, row(session, digest(purpose))),
  }
}
