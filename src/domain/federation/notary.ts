import type { Config } from '../../config/schema.ts'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { signJson } from '../../core/signing/json-signature.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { KeyFetcher } from '../../outbound/server-keys.ts'
import type { Database } from '../../store/db/db.ts'
import { findKeyAnswers, type KeyAnswerRow, saveKeyAnswer } from '../../store/federation/server-key-answers.ts'
import type { Clock } from '../clock.ts'
import {
  INSISTENT_KEY_REQUEST_MS,
  MAX_INSISTENT_KEY_REQUESTS,
  MAX_NOTARY_SERVERS,
  MAX_REMEMBERED_KEY_OWNERS,
} from '../limits.ts'
import { readKeyAnswer } from './key-answer.ts'
import type { OwnKeys } from './own-keys.ts'

/** Answers with the keys of other servers and signs the answer (server-server API, "Querying Keys Through Another Server"). */
export interface Notary {
  /**
   * Returns all key documents of each server. For a server that does not answer, it returns the last one; a server that never answered is
   * left out.
   *
   * @param wanted for each server, the time in ms until which its keys should be valid; undefined if the request names none
   * @throws ProtocolError `M_TOO_LARGE` for too many servers at once
   */
  query(wanted: ReadonlyMap<ServerName, number | undefined>): Promise<JsonObject[]>
}

const AT_ONCE = 8
/** The shortest time between requests to a server whose last answer is getting old, or that gave none. */
const PAUSE_MS = 60_000

/** How many requests to a server are still allowed within the pause, at a moment. */
interface Insistence {
  readonly left: number
  readonly at: number
}

export function createNotary(deps: {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly clock: Clock
  readonly signingKey: SigningKey
  readonly ownKeys: OwnKeys
  readonly fetcher: Pick<KeyFetcher, 'own'>
}): Notary {
  const { config, db, clock, signingKey, ownKeys, fetcher } = deps
  const running = new Map<ServerName, Promise<KeyAnswerRow | undefined>>()
  const askedAt = createCache<ServerName, number>(MAX_REMEMBERED_KEY_OWNERS)
  const insistence = createCache<ServerName, Insistence>(MAX_REMEMBERED_KEY_OWNERS)

  async function ask(server: ServerName): Promise<KeyAnswerRow | undefined> {
    const answer = await fetcher.own(server)
    const now = clock.now()
    if (answer === undefined || readKeyAnswer(server, answer, now) === undefined) return undefined
    const row = {
      ...{ server_name: server, answer: JSON.stringify(answer) },
      ...{ fetched_at: now, valid_until: Number(answer.valid_until_ts) },
    }
    await db.tx((tx) => saveKeyAnswer(tx, row))
    return row
  }

  function askOnce(server: ServerName): Promise<KeyAnswerRow | undefined> {
    const already = running.get(server)
    if (already !== undefined) return already
    askedAt.set(server, clock.now())
    const asking = ask(server).finally(() => running.delete(server))
    running.set(server, asking)
    return asking
  }

  /**
   * Whether a server may be asked again within the pause, because its known keys expire before the time that the caller needs. Each such
   * request counts, whichever key it asks for.
   */
  function mayInsist(server: ServerName): boolean {
    const now = clock.now()
    const { left, at } = insistence.get(server) ?? { left: MAX_INSISTENT_KEY_REQUESTS, at: now }
    const refilled = Math.min(MAX_INSISTENT_KEY_REQUESTS, left + (now - at) / INSISTENT_KEY_REQUEST_MS)
    const isAllowed = refilled >= 1
    insistence.set(server, { left: isAllowed ? refilled - 1 : refilled, at: now })
    return isAllowed
  }

  /** An answer is fresh for half of its remaining validity, so that retired keys are not given out for long. */
  function isFresh({ fetched_at, valid_until }: KeyAnswerRow, minimum: number): boolean {
    return valid_until >= minimum && clock.now() < fetched_at + (valid_until - fetched_at) / 2
  }

  async function answerOf(
    server: ServerName,
    minimum: number | undefined,
    known: KeyAnswerRow | undefined,
  ): Promise<JsonObject | undefined> {
    if (server === config.server_name) return ownKeys.published()
    const isTooShort = known !== undefined && minimum !== undefined && known.valid_until < minimum
    const mayAsk = running.has(server) || (askedAt.get(server) ?? 0) + PAUSE_MS <= clock.now()
    const isDue = isTooShort
      ? mayAsk || mayInsist(server)
      : mayAsk && !(known && isFresh(known, minimum ?? clock.now()))
    const row = (isDue ? await askOnce(server) : undefined) ?? known
    return row && signJson(JSON.parse(row.answer) as JsonObject, config.server_name, signingKey)
  }

  return {
    async query(wanted) {
      if (wanted.size > MAX_NOTARY_SERVERS) {
        throw new ProtocolError(
          'M_TOO_LARGE',
          `The keys of at most ${MAX_NOTARY_SERVERS} servers are answered at once.`,
          {
            status: 400,
          },
        )
      }
      const known = new Map((await findKeyAnswers(db, [...wanted.keys()])).map((row) => [row.server_name, row]))
      const left = [...wanted]
      const answers: JsonObject[] = []
      const next = async (): Promise<void> => {
        for (let one = left.pop(); one !== undefined; one = left.pop()) {
          const answer = await answerOf(...one, known.get(one[0]))
          if (answer !== undefined) answers.push(answer)
        }
      }
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, next))
      return answers
    },
  }
}
