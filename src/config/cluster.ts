import { Type } from '../core/shapes.ts'
import { section, text } from './parts.ts'

export const clusterSection = section(
  'Several processes that run one server. For now one of them serves, and the others stand by to take its place.',
  {
    secret: Type.Optional(
      text(
        'Any long random text, the same for all nodes: with it, a process whose `database.url` another one uses already stands by. Without it, that process is refused.',
        { secret: true, minLength: 32, example: 'what "openssl rand -base64 33" prints' },
      ),
    ),
  },
)
