import { decodeQuotedPrintable, type SmtpSink } from '../support/smtp.ts'

/** What a person does with the newest mail: opens its link in a browser, and confirms what the page asks. */
export async function followMail(smtp: SmtpSink, to: string, baseUrl: string): Promise<void> {
  const mail = smtp.mails.at(-1)
  if (mail?.to[0] !== to) throw new Error(`the newest mail is not for ${to}`)
  const link = /http:\/\/\S+submitToken\S+/.exec(decodeQuotedPrintable(mail.raw))?.[0]
  if (link === undefined) throw new Error('the newest mail has no link')
  // It says where the server believes to be; in a test it listens elsewhere.
  const url = new URL(link)
  const opened = await fetch(baseUrl + url.pathname + url.search)
  const page = await opened.text()
  if (opened.status !== 200) throw new Error(page)
  const action = /<form method="post" action="([^"]+)"/.exec(page)?.[1]
  if (action === undefined) return
  const hidden = [...page.matchAll(/name="([^"]+)" value="([^"]*)"/g)]
  const body = new URLSearchParams(Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value])))
  const confirmed = await fetch(baseUrl + new URL(action, url).pathname, { method: 'POST', body })
  if (confirmed.status !== 200) throw new Error(await confirmed.text())
}
