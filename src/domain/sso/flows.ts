import { createHmac } from 'node:crypto'
import type { SignInSecrets } from '../../outbound/openid-provider.ts'
import {
  countUnanswered,
  deleteOldestUnanswered,
  type FlowKey,
  type FlowRow,
  findFlow,
  insertFlow,
  takeFlow,
} from '../../store/accounts/sso-flows.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_SSO_FLOWS, SSO_FLOW_MS } from '../limits/sso.ts'
import { oldestGiveWay } from '../oldest-give-way.ts'
import { hashToken } from '../opaque-tokens.ts'
import type { Purpose, SignInAttempt } from './failure.ts'

/** A person whom a provider has confirmed, and who has no account here yet. */
export interface Person {
  readonly subject: string
  readonly suggestion: string
  readonly displayName: string | undefined
  readonly email: string | undefined
}

export interface Flow extends SignInAttempt {
  readonly startedAt: number
}

const SECRET_BYTES = 32
const SECRET = /^[\w-]{43}$/

/**
 * Sign-ins in progress. Each belongs to the browser that began it. Its id passes through URLs, but is useless without that browser's
 * cookie. So nobody can be made to sign in as somebody else by a link.
 */
export function createFlows(deps: { readonly db: Database; readonly clock: Clock; readonly random: Random }) {
  const { db, clock, random } = deps
  const newSecret = (): string => random.bytes(SECRET_BYTES).toString('base64url')
  /** Anybody may begin a sign-in. */
  const makeRoom = oldestGiveWay(deps, {
    most: MAX_SSO_FLOWS,
    count: countUnanswered,
    deleteOldest: deleteOldestUnanswered,
  })

  function keyOf(flow: string, browser: string | undefined, isAnswered: boolean): FlowKey | undefined {
    if (browser === undefined || !SECRET.test(flow) || !SECRET.test(browser)) return undefined
    return { flowHash: hashToken(flow), browserHash: hashToken(browser), isAnswered }
  }

  async function store(
    tx: Tx,
    { providerId, purpose }: SignInAttempt,
    browser: string,
    person?: Person,
  ): Promise<string> {
    const flow = newSecret()
    const startedAt = clock.now()
    await insertFlow(
      tx,
      { flowHash: hashToken(flow), browserHash: hashToken(browser) },
      {
        provider: providerId,
        purpose: JSON.stringify(purpose),
        person: person && JSON.stringify(person),
        startedAt,
        expiresAt: startedAt + SSO_FLOW_MS,
      },
    )
    return flow
  }

  return {
    /** A browser's secret: the one in its cookie, or a new one for a new cookie. */
    browserSecret: (cookie: string | undefined): string =>
      cookie !== undefined && SECRET.test(cookie) ? cookie : newSecret(),

    /** Derived from the browser's secret, so that no table holds what could finish a sign-in. */
    secretsOf(flow: string, browser: string): SignInSecrets {
      const derive = (use: string): string => createHmac('sha256', browser).update(`${use} ${flow}`).digest('base64url')
      return { state: flow, nonce: derive('nonce'), codeVerifier: derive('verifier') }
    },

    async begin(attempt: SignInAttempt, browser: string): Promise<string> {
      await makeRoom()
      return db.tx((tx) => store(tx, attempt, browser))
    },

    /** The flow of a provider's answer, once; undefined if it is another browser's, has expired, or was answered. */
    async answer(flow: string, browser: string | undefined): Promise<Flow | undefined> {
      const key = keyOf(flow, browser, false)
      return key && parsed(await db.tx((tx) => takeFlow(tx, key, clock.now())))
    },

    /** Stores a person until they choose a user name, and returns the id of the stored row. */
    park: (attempt: SignInAttempt, browser: string, person: Person): Promise<string> =>
      db.tx((tx) => store(tx, attempt, browser, person)),

    async parked(flow: string, browser: string | undefined): Promise<(Flow & { person: Person }) | undefined> {
      const key = keyOf(flow, browser, true)
      return key && withPerson(await findFlow(db, key, clock.now()))
    },

    /** Deletes the stored person, in the transaction that makes the account. */
    async unpark(tx: Tx, flow: string, browser: string): Promise<boolean> {
      const key = keyOf(flow, browser, true)
      return key !== undefined && (await takeFlow(tx, key, clock.now())) !== undefined
    },
  }
}

function parsed(row: FlowRow | undefined): Flow | undefined {
  return row && { providerId: row.provider, purpose: JSON.parse(row.purpose) as Purpose, startedAt: row.started_at }
}

function withPerson(row: FlowRow | undefined): (Flow & { person: Person }) | undefined {
  const flow = parsed(row)
  return flow && { ...flow, person: JSON.parse(row?.person ?? '{}') as Person }
}
