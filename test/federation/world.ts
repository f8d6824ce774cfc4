import { AsyncLocalStorage } from 'node:async_hooks'
import type { RoomId, ServerName } from '../../src/core/ids.ts'
import { readExactJson } from '../../src/core/json.ts'
import type { Clock, Random } from '../../src/domain/clock.ts'
import type { FederationQueries } from '../../src/domain/rooms/receive/federation-queries.ts'
import type { Resident } from '../../src/domain/rooms/remote/resident.ts'
import type { Dice } from './dice.ts'
import type { Network } from './network.ts'

/** What a server answers others; one that lies has answers of its own. */
export interface Answers extends Pick<Resident, 'stateIds'> {
  missingEvents(...of: Parameters<Resident['missingEvents']>): Promise<string[]>
  events(...of: Parameters<Resident['events']>): Promise<string[]>
}

const textsOf = (events: readonly { readonly json: string }[]): string[] => events.map(({ json }) => json)

/** The answers of a server that tells the truth, as they go over the wire. */
export function honestAnswers(resident: Resident): Answers {
  return {
    stateIds: resident.stateIds,
    missingEvents: async (...of) => textsOf(await resident.missingEvents(...of)),
    events: async (...of) => textsOf(await resident.events(...of)),
  }
}

/** The surroundings of one run: its time, its randomness, its network. Several runs share the servers, each in rooms of its own. */
export interface Surroundings {
  readonly dice: Dice
  readonly network: Network
  answersOf(server: ServerName): Answers
  /** Told of each question, for tests that count them. */
  asked?(from: ServerName, of: ServerName, kind: keyof FederationQueries, roomId: RoomId): void
}

const current = new AsyncLocalStorage<Surroundings>()

/** Runs something so that servers find these surroundings, however many others run at the same time. */
export function within<T>(surroundings: Surroundings, run: () => Promise<T>): Promise<T> {
  return current.run(surroundings, run)
}

const BEFORE_ANY_RUN = 1_600_000_000_000

export const virtualClock: Clock = { now: () => current.getStore()?.network.now ?? BEFORE_ANY_RUN }

export const seededRandom: Random = {
  bytes: (count) => current.getStore()?.dice.bytes(count) ?? Buffer.alloc(count),
}

/** How a server asks the others of the run it is in. */
export function questionsOf(server: ServerName): FederationQueries {
  async function ask<Answer>(
    of: ServerName,
    kind: keyof FederationQueries,
    roomId: RoomId,
    answer: (answers: Answers) => Promise<Answer>,
    silence: Answer,
  ): Promise<Answer> {
    const around = current.getStore()
    if (!around) throw new Error(`${server} asked ${of} for ${kind} outside of any run`)
    around.asked?.(server, of, kind, roomId)
    return around.network.ask(server, of, () => answer(around.answersOf(of)), silence)
  }

  return {
    async missingEvents(of, roomId, between) {
      const texts = await ask(of, 'missingEvents', roomId, (answers) => answers.missingEvents(roomId, between), [])
      return texts.map((text) => readExactJson(text))
    },
    stateIds: (of, roomId, eventId) =>
      ask(of, 'stateIds', roomId, (answers) => answers.stateIds(roomId, eventId), undefined),
    async events(of, roomId, eventIds) {
      const texts = await ask(of, 'events', roomId, (answers) => answers.events(roomId, eventIds), [])
      return texts.map((text) => readExactJson(text))
    },
  }
}
