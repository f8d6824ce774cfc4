import { extname } from 'node:path'
import { ProtocolError } from '../../core/errors.ts'
import { takesGzip } from '../../http/compression.ts'
import { endpoint, rawReply } from '../../http/endpoint.ts'
import { consoleOperator } from './console-session.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** A name is a hash of what it names, so a browser keeps the file for good. */
export const getConsoleFile = endpoint(
  'GET /_hearth/admin/files/{name}',
  { auth: 'none' },
  async (request, services) => {
    const { name } = request.params
    const [operator, list] = await Promise.all([
      consoleOperator(services, (cookie) => request.cookie(cookie)),
      services.admin.views.files.list(),
    ])
    if (operator === undefined) throw new ProtocolError('M_MISSING_TOKEN', 'Sign in to the console first.')
    if (!list?.files.includes(name)) throw new ProtocolError('M_NOT_FOUND', 'The console has no such file.')
    const isCompressed = takesGzip(request.header('accept-encoding'))
    return rawReply({
      headers: {
        'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
        'cache-control': 'private, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        vary: 'accept-encoding',
        ...(isCompressed && { 'content-encoding': 'gzip' }),
      },
      body: await services.admin.views.files.read(name, isCompressed),
    })
  },
)
