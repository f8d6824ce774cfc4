import {
  AutojoinRoomsMixin,
  LogLevel,
  LogService,
  MatrixAuth,
  MatrixClient,
  MemoryStorageProvider,
} from 'matrix-bot-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, createRoom, type Json, openApi, PASSWORD, register, sendText } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'
import { newName, openTarget } from './target.ts'

let target: Awaited<ReturnType<typeof openTarget>>
let api: Api
beforeAll(async () => {
  LogService.muteModule('MatrixHttpClient')
  LogService.setLevel(LogLevel.ERROR)
  target = await openTarget()
  api = openApi(target.baseUrl)
})
afterAll(async () => {
  await api.close()
  await target.close()
})

test('a bot on matrix-bot-sdk joins when invited and answers a command', async () => {
  const name = newName('bot')
  await register(api, name)
  const { accessToken } = await new MatrixAuth(target.baseUrl).passwordLogin(name, PASSWORD)
  const bot = new MatrixClient(target.baseUrl, accessToken, new MemoryStorageProvider())
  AutojoinRoomsMixin.setupOnClient(bot)
  const botId = await bot.getUserId()
  bot.on('room.message', (roomId: string, event: Json) => {
    if (event.sender !== botId && event.content.body === '!ping') void bot.replyText(roomId, event, 'pong')
  })
  await bot.start()
  try {
    const human = await register(api, newName('human'))
    const roomId = await createRoom(api, human.token, { preset: 'private_chat', invite: [botId] })
    const room = `/rooms/${encodeURIComponent(roomId)}`
    await waitUntil('the bot in the room', async () => {
      const members = await api.call('GET', `${room}/joined_members`, {
        token: human.token,
      })
      return members.joined[botId] !== undefined
    })
    const command = await sendText(api, human.token, roomId, 'ping', '!ping')
    const answer = await waitUntil('the answer', async () => {
      const page = await api.call('GET', `${room}/messages?dir=b&limit=10`, { token: human.token })
      return page.chunk.find((event: Json) => event.sender === botId && event.content.body)
    })
    expect(answer.content.body).toContain('pong')
    expect(answer.content['m.relates_to']).toEqual({ 'm.in_reply_to': { event_id: command } })
    await bot.setAccountData('org.example.memory', { answered: 1 })
    expect(await bot.getAccountData('org.example.memory')).toEqual({ answered: 1 })
  } finally {
    bot.stop()
  }
})
