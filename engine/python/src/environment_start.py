import os,sys
r=b""
while not r.endswith(b"\n"):
    c=os.read(int(sys.argv[1]),1<<20)
    r+=c
    if not c:sys.exit(1)
import json
s=json.loads(r)
g={"__name__":"_tracebook_cells"}
exec(compile(s["harness"],"<tracebook>","exec"),g)
g["serve"](int(sys.argv[1]),int(sys.argv[2]),s)
