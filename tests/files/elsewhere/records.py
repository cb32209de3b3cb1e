"""A program for MXNet 1.9.1 that writes files of records into a folder, and reads those that
stand there; prints what it read, as JSON, in hexadecimal digits.
"""

import json
import sys

import mxnet as mx
from mxnet import recordio

folder, records = sys.argv[1], json.loads(sys.argv[2])
written = recordio.MXIndexedRecordIO(folder + "/mxnet.idx", folder + "/mxnet.rec", "w")
for i, record in enumerate(records):
    written.write_idx(i, bytes.fromhex(record))
written.close()

indexed = recordio.MXIndexedRecordIO(folder + "/here.idx", folder + "/here.rec", "r")
in_order = recordio.MXRecordIO(folder + "/here.rec", "r")
header = recordio.IRHeader(9, [1.5, -2], 3, 1 << 40)
one = recordio.pack(recordio.IRHeader(9, 4, 3, 0), b"picture")
pictures = mx.gluon.data.vision.ImageRecordDataset(folder + "/pictures.rec")
print(
    json.dumps(
        {
            "by key": [indexed.read_idx(k).hex() for k in indexed.keys],
            "in order": [in_order.read().hex() for _ in records],
            "packed": [recordio.pack(header, b"picture").hex(), one.hex()],
            "pictures": [[x.asnumpy().tolist(), float(y)] for x, y in pictures],
        }
    )
)
