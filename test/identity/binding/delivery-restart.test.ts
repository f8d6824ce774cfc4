import { expect, it } from 'vitest'
import { startServer } from '../../support/server.ts'
import { decodeQuotedPrintable, startSmtp } from '../../support/smtp.ts'
import { waitUntil } from '../../support/wait.ts'
import { openIdentity, P1 } from '../identity-api.ts'

it('facts S21: what could not be delivered survives a restart, and the next process tries it again', async () => {
  const smtp = await startSmtp({ hideSTARTTLS: true })
  const server = await startServer({
    identity: { mail: { smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' } } },
  })
  const { db } = server.database
  const { ask } = openIdentity(server.baseUrl)
  const post = async (path: string, body: object) => {
    const answer = await ask('POST', P1 + path, { body })
    expect(answer.status).toBe(200)
    return answer.body
  }
  const address = 'invitee@example.org'
  await post('/store-invite', { medium: 'email', address, room_id: '!a:hs.test', sender: '@sender:hs.test' })
  const session = { client_secret: 'secret', sid: '' }
  session.sid = (await post('/validate/email/requestToken', { ...session, email: address, send_attempt: 1 })).sid
  const token = /[?&]token=([\w-]+)/.exec(decodeQuotedPrintable(smtp.mails.at(-1)?.raw ?? ''))?.[1]
  await post('/validate/email/submitToken', { ...session, token })
  await post('/3pid/bind', { ...session, mxid: '@invitee:nowhere.invalid' })

  const attempts = async () =>
    (await db.query<{ attempts: number }>('SELECT attempts FROM identity_delivery'))[0]?.attempts
  await waitUntil('the first attempt', async () => (await attempts()) === 1)
  await server.restart()
  await db.query('UPDATE identity_delivery SET due_at = 0')
  await waitUntil('another attempt', async () => (await attempts()) === 2)

  await server.close()
  await smtp.close()
})
