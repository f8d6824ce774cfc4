import { type Account, type Api, createRoom, join, mapConcurrently, register, sendText } from '../api.ts'

/** What the people of matrix-rust-sdk's story find: two accounts, and the rooms of Anna. */
export interface Stage {
  readonly anna: Account
  readonly ben: Account
  /** Anna's, the oldest first. Ben is in the last two. */
  readonly rooms: readonly string[]
  /** The last but one: it has old messages. */
  readonly talk: string
  /** The last, which is encrypted. */
  readonly secret: string
}

export const ROOM_COUNT = 300
export const OLD_MESSAGES = 60
export const nameOf = (index: number): string => `Room ${index}`
export const oldText = (index: number): string => `old ${index}`

/** Everything comes in one order, so that it is the same each time. */
export async function setStage(api: Api): Promise<Stage> {
  const anna = await register(api, 'anna')
  const ben = await register(api, 'ben')
  const rooms: string[] = []
  for (let index = 0; index < ROOM_COUNT - 2; index++) {
    rooms.push(await createRoom(api, anna.token, { name: nameOf(index), preset: 'private_chat' }))
  }
  const body = { preset: 'public_chat' }
  const talk = await createRoom(api, anna.token, { ...body, name: 'The hearth' })
  await join(api, ben.token, talk)
  const texts = Array.from({ length: OLD_MESSAGES }, (_, index) => oldText(index))
  await mapConcurrently(texts, 1, (text) => sendText(api, anna.token, talk, text, text))
  const encryption = { type: 'm.room.encryption', state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } }
  const secret = await createRoom(api, anna.token, { ...body, name: 'Secrets', initial_state: [encryption] })
  await join(api, ben.token, secret)
  return { anna, ben, rooms: [...rooms, talk, secret], talk, secret }
}
