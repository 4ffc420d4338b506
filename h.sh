nx () 
{ 
    local out;
    out=$("$@" 2>&1);
    echo "--- $*";
    echo "$out" | f;
    local n=$(echo "$out" | sed -n 's/^NEXT:ACTION //p');
    if [ -n "$n" ]; then
        echo "   >>> $n";
        eval "$n" 2>&1 | f | sed 's/^/   /';
    fi
}
