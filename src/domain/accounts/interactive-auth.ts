import { createHash } from 'node:crypto'
import { ProtocolError } from '../../core/errors.ts'
import { encodeCanonical, type JsonObject } from '../../core/json.ts'
import type { Database, Tx } from '../../store/db.ts'
import {
  deleteUiaSession,
  findUiaSession,
  insertUiaSession,
  lockUiaSession,
  type UiaSessionRow,
  updateUiaSession,
} from '../../store/uia-sessions.ts'
import type { Clock, Random } from '../clock.ts'
import { UIA_SESSION_MS } from '../limits.ts'
import type { Requester } from './requester.ts'

/** Stages to complete, in any order: `['m.login.registration_token', 'm.login.dummy']`. */
export type UiaFlow = readonly string[]

/** The stages that were completed, each with what it established. Never a password. */
export type UiaProof = Readonly<Record<string, JsonObject>>

export interface UiaAttempt {
  /** Method, path and parameters of the call. What was proven for one operation counts for no other. */
  readonly operation: string
  readonly requester: Requester | undefined
  /** The body's `auth`. */
  readonly auth: JsonObject | undefined
  /** The body without `auth`: it is fixed when the first stage is tried. */
  readonly body: JsonObject
  readonly flows: readonly UiaFlow[]
}

/** Either all that one flow wants, or the 401 body that says what is still to do. */
export type UiaOutcome = { readonly proof: UiaProof } | { readonly challenge: JsonObject }

/** Checks what a client sent for one stage. Gives what it established; throws a `ProtocolError` when it is wrong. */
export type UiaStage = (auth: JsonObject, requester: Requester | undefined) => Promise<JsonObject>

export interface InteractiveAuth {
  advance(attempt: UiaAttempt): Promise<UiaOutcome>
}

interface Session {
  /** Undefined for one that is not stored yet. */
  readonly id: string | undefined
  readonly completed: Record<string, JsonObject>
}

const SESSION_BYTES = 18
/** As `begin` makes them. */
const SESSION_ID = /^[\w-]{24}$/

function isComplete(flows: readonly UiaFlow[], completed: Readonly<Record<string, JsonObject>>): boolean {
  return flows.some((flow) => flow.every((stage) => Object.hasOwn(completed, stage)))
}

/**
 * User-interactive authentication (client-server API, "User-Interactive Authentication API").
 *
 * A session belongs to one operation of one user and, from the first stage on, to one body. It ends the moment it is complete, so
 * that nothing can be authorised twice by it. A call that completes all stages at once is never stored.
 */
export function createInteractiveAuth(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly stages: Readonly<Record<string, UiaStage>>
}): InteractiveAuth {
  const { db, clock, random, stages } = deps

  function operationOf(attempt: UiaAttempt): string {
    return `${attempt.requester?.userNid ?? ''} ${attempt.operation}`
  }

  function bodyHash(attempt: UiaAttempt): Buffer {
    return createHash('sha256').update(encodeCanonical(attempt.body)).digest()
  }

  async function begin(tx: Tx, attempt: UiaAttempt): Promise<string> {
    const sessionId = random.bytes(SESSION_BYTES).toString('base64url')
    const now = clock.now()
    await insertUiaSession(tx, { sessionId, operation: operationOf(attempt), createdAt: now }, now - UIA_SESSION_MS)
    return sessionId
  }

  async function challenge(attempt: UiaAttempt, session: Session, error?: ProtocolError): Promise<UiaOutcome> {
    const id = session.id ?? (await db.tx((tx) => begin(tx, attempt)))
    const completed = Object.keys(session.completed)
    return {
      challenge: {
        ...error?.toJSON(),
        flows: attempt.flows.map((flow) => ({ stages: [...flow] })),
        params: {},
        session: id,
        ...(completed.length > 0 && { completed }),
      },
    }
  }

  /** The session that the client names, if it is one of this operation. */
  function check(row: UiaSessionRow | undefined, attempt: UiaAttempt): Session {
    if (row === undefined) {
      throw new ProtocolError('M_UNKNOWN', 'This session is not known or has ended. Start again.', { status: 401 })
    }
    const fits = row.body_hash === null || row.body_hash.equals(bodyHash(attempt))
    if (row.operation !== operationOf(attempt) || !fits) {
      throw new ProtocolError('M_FORBIDDEN', 'The request is not the one that this session was begun for.')
    }
    return { id: row.session_id, completed: JSON.parse(row.completed) as Record<string, JsonObject> }
  }

  async function find(id: string): Promise<UiaSessionRow | undefined> {
    return SESSION_ID.test(id) ? findUiaSession(db, id, clock.now() - UIA_SESSION_MS) : undefined
  }

  /** What the client proves with this call, judged before the session is locked: hashing a password takes time. */
  async function prove(auth: JsonObject, attempt: UiaAttempt): Promise<Record<string, JsonObject>> {
    const { type } = auth
    if (type === undefined) return {}
    const stage = typeof type === 'string' && attempt.flows.flat().includes(type) ? stages[type] : undefined
    if (stage === undefined) throw new ProtocolError('M_UNRECOGNIZED', 'This type of authentication is not asked for.')
    return { [type as string]: await stage(auth, attempt.requester) }
  }

  async function record(
    sessionId: string,
    proven: Record<string, JsonObject>,
    attempt: UiaAttempt,
  ): Promise<Session & { isDone: boolean }> {
    return db.tx(async (tx) => {
      const session = check(await lockUiaSession(tx, sessionId, clock.now() - UIA_SESSION_MS), attempt)
      const completed = { ...proven, ...session.completed }
      const isDone = isComplete(attempt.flows, completed)
      if (isDone) await deleteUiaSession(tx, sessionId)
      else await updateUiaSession(tx, sessionId, bodyHash(attempt), JSON.stringify(completed))
      return { id: sessionId, completed, isDone }
    })
  }

  return {
    async advance(attempt) {
      const { auth, flows } = attempt
      if (auth === undefined) return challenge(attempt, { id: undefined, completed: {} })
      const named = typeof auth.session === 'string' ? auth.session : undefined
      let session: Session = { id: undefined, completed: {} }
      try {
        if (named !== undefined) {
          session = check(await find(named), attempt)
        }
        const proven = await prove(auth, attempt)
        if (isComplete(flows, proven) && named === undefined) return { proof: proven }
        const id = named ?? (await db.tx((tx) => begin(tx, attempt)))
        const { isDone, ...after } = await record(id, proven, attempt)
        return isDone ? { proof: after.completed } : await challenge(attempt, after)
      } catch (error) {
        if (error instanceof ProtocolError && error.status !== 429 && error.status < 500) {
          return challenge(attempt, session, error)
        }
        throw error
      }
    },
  }
}
