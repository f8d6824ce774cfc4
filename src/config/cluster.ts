import { Type } from '../core/shapes.ts'
import { port, section, text } from './parts.ts'

export const clusterSection = section(
  'Several processes that run one server. For now one of them serves, and the others stand by to take its place.',
  {
    secret: Type.Optional(
      text(
        'Any long random text, the same for all nodes: with it, a process whose `database.url` another one uses already stands by. Without it, that process is refused.',
        { secret: true, minLength: 32, example: 'what "openssl rand -base64 33" prints' },
      ),
    ),
    host: text(
      'The address of this machine at which other nodes reach it, and on which it listens for them. Nobody else has to reach it; what nodes say there is not encrypted.',
      { default: '127.0.0.1', minLength: 1 },
    ),
    port: port('The port for other nodes; 0 takes a free one.', 8010),
  },
)
