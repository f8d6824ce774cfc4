import { Readable } from 'node:stream'
import { ProtocolError } from '../../../core/errors.ts'
import { localpartOf } from '../../../core/ids.ts'
import { Type } from '../../../core/shapes.ts'
import type { Services } from '../../../domain/services.ts'
import { endpoint, type RawReply, rawReply } from '../../../http/endpoint.ts'
import { goTo } from '../../oauth/answer.ts'
import { type Owner, whenSubmitted } from '../signed-in.ts'
import { DATA_PAGE, dataPage } from './data-page.ts'
import { paced } from './paced.ts'

const Form = Type.Object({ form: Type.Optional(Type.String()), action: Type.Optional(Type.String()) })

/** Asks for the archive of a person's data, downloads it, or deletes it. */
export const useData = endpoint(
  'POST /_hearth/account/data',
  { auth: 'none', limited: 'login', body: Form, forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'just now', next: DATA_PAGE }, async (owner) => {
      const { userNid } = owner.session
      try {
        if (request.body.action === 'download') return (await download(services, owner)) ?? goTo(DATA_PAGE)
        if (request.body.action === 'remove') await services.archives.remove(userNid)
        else await services.archives.request(userNid)
        return goTo(DATA_PAGE)
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
        return dataPage(services, request, owner, error)
      }
    }),
)

/** Undefined if the archive has expired meanwhile. */
async function download({ archives }: Services, { session }: Owner): Promise<RawReply | undefined> {
  const archive = await archives.open(session.userNid)
  if (archive === undefined) return undefined
  const body: Readable = Readable.from(
    paced(archive.stream, () => body.destroy()),
    { objectMode: false },
  )
  const name = localpartOf(session.userId).replace(/[^\w.-]/g, '_')
  return rawReply({
    headers: {
      'content-type': 'application/x-tar',
      'content-length': String(archive.bytes),
      'content-disposition': `attachment; filename="${name}.tar"`,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
    body,
    closed() {
      body.destroy()
      archive.stream.destroy()
      archive.done()
    },
  })
}
