import type { IncomingMessage } from 'node:http'
import type { ContextOptions } from './base.ts'
import { ProtocolError } from './core/errors.ts'
import { createAccountDataReader } from './domain/accounts/account-data.ts'
import { createDeviceReader } from './domain/accounts/devices.ts'
import { createFilters } from './domain/accounts/filters.ts'
import { createProfileReader } from './domain/accounts/profiles.ts'
import { createOperators } from './domain/admin/operators.ts'
import { createKeyBackups } from './domain/e2e/key-backups.ts'
import { createStandbyKeyQueries } from './domain/keys/standby-query.ts'
import {
  MAX_STANDBY_ANSWER_BYTES,
  MAX_TOKENS_AHEAD,
  STANDBY_MEMORY_BYTES,
  STANDBY_POOL_SIZE,
} from './domain/limits/cluster.ts'
import { type LastingStore, lasting } from './domain/media/lasting-store.ts'
import { openMediaStore } from './domain/media/open-store.ts'
import { createStandbyMedia } from './domain/media/standby-media.ts'
import { onceAMinute } from './domain/once-a-minute.ts'
import { createPushRuleReader } from './domain/push/rule-edits.ts'
import { lookUpRulesets } from './domain/push/rules.ts'
import { createStandbyReader } from './domain/rooms/read/standby-reader.ts'
import { openRoomMemory } from './domain/rooms/room/room-memory.ts'
import type { Services } from './domain/services.ts'
import { OnlyWhereServed } from './domain/standby/only-where-served.ts'
import { createQuietSyncs } from './domain/standby/quiet-syncs.ts'
import { createStandbyRest, type StandbyRest } from './domain/standby/rest.ts'
import type { StandbyServices } from './domain/standby/services.ts'
import { createStandbySessions } from './domain/standby/sessions.ts'
import { createStandbyTokens, type StandbyTokens } from './domain/standby/tokens.ts'
import { createHeldSyncs } from './domain/sync/held-syncs.ts'
import { createSentAnswers, type SentAnswers } from './domain/sync/sent-answers.ts'
import { createProfileAccess } from './domain/user-directory/profile-access.ts'
import type { BodyIntake } from './http/body-intake.ts'
import { addressReader } from './http/client-address.ts'
import { createCompression } from './http/compression.ts'
import { apiOf, type MountDeps, mountApis } from './http/mount.ts'
import type { TokensAhead } from './http/nodes/ahead.ts'
import { isShort, tableOf } from './http/nodes/anywhere.ts'
import { isSlidingSync } from './http/nodes/asked-sync.ts'
import { createBatchingHere } from './http/nodes/batching-here.ts'
import type { Front } from './http/nodes/front.ts'
import { createNewsStream } from './http/nodes/news-stream.ts'
import type { Reading } from './http/nodes/reading-here.ts'
import { createSyncingHere } from './http/nodes/syncing-here.ts'
import { createServer, type Declined } from './http/server.ts'
import { anywhereEndpoints, batchedEndpoints, standbyRole } from './routes/client/standby.ts'
import { type Database, openDatabase } from './store/db/db.ts'

/** What a node that stands by answers itself. */
export interface StandingBy extends Reading {
  close(): Promise<void>
}

/**
 * Opens what a node that stands by reads with. It has no place among the nodes, so it starts nothing, and can write nothing: neither
 * `Database.tx` nor Postgres lets it. It also hears of no write, so whatever it answers from memory it compares with the database first.
 *
 * @param front `passOn` takes each request to which its answer would be an error, or is not here
 */
export async function openStandingBy(
  options: ContextOptions,
  { address, passOn }: Pick<Front, 'address' | 'passOn'>,
): Promise<StandingBy> {
  const { clock = Date, config, connection, log, metrics, tracing } = options
  const db = openDatabase({ connection, poolSize: STANDBY_POOL_SIZE, readsOnly: true })
  const { budget, close: forget } = openRoomMemory(STANDBY_MEMORY_BYTES)
  const { store, close: closeStore } = lasting(openMediaStore({ config, log }))
  const services = standbyServices({ config, db, clock, budget, store })
  const addressOf = addressReader(config.trusted_proxies)
  const compression = createCompression(addressOf)
  const bodies = new WeakMap<IncomingMessage, Buffer>()
  const intake = intakeOf(bodies)
  const { takeToken, aheadOf } = tokensOf(config, createStandbyTokens({ clock }))
  const rest = createStandbyRest(db)
  const note = noteFailures(rest, log)
  const declined: Declined = (request, response, error) => {
    note(error)
    passOn(request, response, { ahead: aheadOf(request) })
  }
  const app = createServer({ log, metrics, tracing, intake, declined })
  const sessions = createStandbySessions({ db, clock })
  const role = standbyRole(sessions, config.limits.max_body_bytes)
  const api = apiOf(
    () => anywhereEndpoints,
    () => role,
  )
  // These endpoints see no more of the services: their declaration says so, and has the compiler check it.
  mountApis(app, [api], { services: services as Services, log, addressOf, intake, compression, takeToken })
  await app.ready()
  const isKnown = tableOf(anywhereEndpoints)
  const { quiet, news } = followSyncs({ config, clock, address })
  metrics.watch({
    waitingSyncs: quiet.waiting,
    endedSyncs: () => quiet.ended,
    waitingTransactions: db.waiting,
    waitingPeerRequests: () => 0,
  })
  const syncing = createSyncingHere({
    quiet,
    answers: createSentAnswers({ held: createHeldSyncs() }),
    addressOf,
    compression,
    metrics,
    maxTimeoutMs: config.limits.max_sync_timeout_ms,
    passOn,
  })
  const { isBatched, inBatch } = createBatchingHere({ endpoints: batchedEndpoints, news, addressOf })
  return {
    isBatched,
    inBatch,
    isSlidingSync: (request) => isSlidingSync(request) && isShort(request.headers),
    takeSync: syncing.take,
    servedBy: news.servedBy,
    enter: news.enter,
    isAnywhere: (request) => !rest.isOn() && isKnown(request),
    routing(request, response, body) {
      if (body !== undefined) bodies.set(request, body)
      app.routing(request, response)
    },
    async close() {
      news.close()
      await app.close()
      forget()
      rest.close()
      await db.close()
      await closeStore()
    },
  }
}

function standbyServices({
  config,
  db,
  clock,
  budget,
  store,
}: Pick<StandbyServices, 'config'> & {
  readonly db: Database
  readonly clock: NonNullable<ContextOptions['clock']>
  readonly budget: ReturnType<typeof openRoomMemory>['budget']
  readonly store: LastingStore['store']
}): StandbyServices {
  const pushRules = lookUpRulesets({ db })
  return {
    config,
    roomReader: createStandbyReader({ config, db, clock, budget }),
    sync: { answer: answerWhole(createSentAnswers({ held: createHeldSyncs() })) },
    accountData: createAccountDataReader({ db, pushRules }),
    pushRules,
    pushRuleEdits: createPushRuleReader(pushRules),
    profiles: createProfileReader({
      serverName: config.server_name,
      db,
      askProfile: elsewhere,
      askService: elsewhere,
    }),
    profileAccess: createProfileAccess({ config, rooms: { mustShareRoom: elsewhere } }),
    keyBackups: createKeyBackups({ db }),
    keyQueries: createStandbyKeyQueries({ serverName: config.server_name, db }),
    admin: { operators: createOperators({ db, clock, sessions: { find: () => undefined } }) },
    devices: createDeviceReader({ db }),
    filters: createFilters({ db }),
    media: createStandbyMedia({ config, db, clock, store }),
  }
}

/** The syncs that are held here, and what is heard of them from the node that serves. */
function followSyncs({
  config,
  clock,
  address: ownAddress,
}: Pick<StandbyServices, 'config'> &
  Pick<Front, 'address'> & { readonly clock: NonNullable<ContextOptions['clock']> }) {
  const quiet = createQuietSyncs({ clock })
  const { secret = '' } = config.cluster
  return { quiet, news: createNewsStream({ secret, now: () => clock.now(), listener: quiet, ownAddress }) }
}

/** Bodies that were read before, because their requests may have to be passed on. */
function intakeOf(bodies: WeakMap<IncomingMessage, Buffer>): BodyIntake {
  return {
    limit() {},
    expect() {},
    read: ({ raw }, done) => done(null, bodies.get(raw)),
    stream() {
      throw new OnlyWhereServed('files are taken where it is served')
    },
  }
}

/** Says in the log what failed here, and has this node rest while the database does not answer. */
function noteFailures(rest: StandbyRest, log: ContextOptions['log']): (error: unknown) => void {
  let err: unknown
  const failed = onceAMinute((times) =>
    log.warn({ err, times }, 'a request could not be answered here, and was passed on'),
  )
  return (error) => {
    if (error === undefined || error instanceof OnlyWhereServed) return
    if (!(error instanceof ProtocolError)) {
      err = error
      failed()
    } else if (error.status === 503) rest.begin()
  }
}

/** What needs other servers or services, or what is in the memory of the node that serves. */
async function elsewhere(): Promise<never> {
  throw new OnlyWhereServed('this is asked where it is served')
}

/** Has requests for which there is no token passed on, together with the wish for some. A request that is passed on pays nothing here. */
function tokensOf(
  config: Pick<ContextOptions['config'], 'rate_limits'>,
  tokens: StandbyTokens,
): {
  readonly takeToken: NonNullable<MountDeps['takeToken']>
  /** Of a request that is passed on. */
  aheadOf(request: IncomingMessage): TokensAhead | undefined
} {
  const wishes = new WeakMap<object, TokensAhead>()
  const taken = new WeakMap<object, () => void>()
  return {
    takeToken(request, limit, key) {
      if (!config.rate_limits.enabled) return
      const outcome = tokens.take(limit, key)
      if (outcome === 'taken') {
        taken.set(request, () => tokens.giveBack(limit, key))
        return
      }
      if (outcome === 'ask')
        wishes.set(request, { count: MAX_TOKENS_AHEAD, granted: (count) => tokens.grant(limit, key, count) })
      throw new OnlyWhereServed('there is no token of the rate limit here')
    },
    aheadOf(request) {
      // The node that answers it takes one too.
      taken.get(request)?.()
      return wishes.get(request)
    },
  }
}

/** Answers in pieces are broken off when their session ends, of which this node does not hear. */
function answerWhole(answers: SentAnswers): SentAnswers['answer'] {
  return (by, make) =>
    answers.answer(by, async () => {
      const json = await make()
      if (!json.isWhole || json.length > MAX_STANDBY_ANSWER_BYTES)
        throw new OnlyWhereServed('the answer is sent in pieces')
      return json
    })
}
